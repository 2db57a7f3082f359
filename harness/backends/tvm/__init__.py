"""TVM (Relax): its levels, and variants of the highest one."""
