"""The same seed and different seeds: M. Morin and M. Willetts, Non-Determinism in TensorFlow ResNets, 2020."""
