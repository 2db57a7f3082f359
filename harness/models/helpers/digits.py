"""The embedded model: a small convolutional network, trained on scikit-learn's digits with a fixed seed."""

SAMPLES = 16


def digits():
    """The network after two epochs, and the first samples that it was not trained on."""
    import torch
    from sklearn.datasets import load_digits

    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = load_digits()
    images = torch.tensor(data.images[:, None] / 16, dtype=torch.float32)
    labels = torch.tensor(data.target)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.BatchNorm2d(16),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.BatchNorm2d(32),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * 4 * 4, 10),
    )
    optimiser = torch.optim.Adam(network.parameters(), 0.005)
    for _ in range(2):
        for batch in torch.randperm(1500).split(50):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimiser.step()
    return network, (images[1500 : 1500 + SAMPLES],)
