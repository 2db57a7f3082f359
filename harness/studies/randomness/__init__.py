"""Where the noise of training comes from: Zhuang et al., Randomness in Neural Network Training, MLSys 2022."""
