"""TorchRec: tables spread over ranks, and quantised for predictions."""
