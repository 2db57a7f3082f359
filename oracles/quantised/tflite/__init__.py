"""TFLite's converter and kernels, and models trained with tfmot."""
