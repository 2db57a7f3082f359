"""How gates read: archives, pickles, protobuf, HDF5, folders; each within bounds, and without executing anything."""
