"""What determinism costs: Zhuang et al. measure the time of training with it over the time without it."""
