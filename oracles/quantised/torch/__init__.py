"""PyTorch's quantisers and kernels, and torchao's."""
