"""A guard of training in PyTorch: it finds values that no fault-free step has, goes back, and has the steps run again.

    guard = Guard(model, optimizer)
    step = 0
    while step < last:
        guard.before(step)
        loss = train(step)  # forward, backward, optimizer.step()
        step = guard.after(step, loss)

`after` returns the next step: one further, or, where something is wrong, the one before this one (this one, where there
is none before), with model and optimiser as they were then. What is wrong again when it is run again is no passing
fault: it is believed, and the bounds are wider from then on. `alarms` lists the steps that were run again and why,
`repeated` those of them that came again. replicas: all ranks of a process group call it, go back together, and compare
parameters."""

import torch

from harness.studies.faults.guard.bounds import BACK, Watch

RULES = {
    "Adam": {"exp_avg": "mean", "exp_avg_sq": "square"},
    "AdamW": {"exp_avg": "mean", "exp_avg_sq": "square"},
    "RMSprop": {"square_avg": "square"},
    "Adagrad": {"sum": "sum"},
    "SGD": {"momentum_buffer": "momentum"},
}
"""What optimisers keep of gradients, and by which rule."""


class Guard(Watch):
    def __init__(self, model, optimizer, bounds=None, replicas=False):
        self.model, self.optimizer, self.replicas = model, optimizer, replicas
        self.rules = RULES[type(optimizer).__name__]
        self.names = {p: name for name, p in model.named_parameters() if p.requires_grad}
        self.norms = {
            name: module
            for name, module in model.named_modules()
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm) and module.track_running_stats
        }
        self.saved, self.free = [], []  # (step, tensors, copies, random state), the oldest first; copies to use again
        super().__init__(bounds)

    def before(self, step):
        """Keep a copy of all that the step changes."""
        tensors = self._tensors()
        copies = self.free.pop() if self.free else None
        if len(self.saved) == BACK:
            copies = self.saved.pop(0)[2]
        with torch.no_grad():
            if copies is None or [c.shape for c in copies] != [t.shape for t in tensors]:
                copies = [tensor.detach().clone() for tensor in tensors]
            else:
                torch._foreach_copy_(copies, tensors)
        self.saved.append((step, tensors, copies, torch.get_rng_state()))

    def after(self, step, loss):
        """The step to run next."""
        gradients = {}
        for p, name in self.names.items():
            if p.grad is not None:
                gradients[name] = _range(p.grad)
        kept = self._with_before(self._kept())
        statistics = self._statistics()
        loss = float(torch.as_tensor(loss).detach())
        reason = self.bounds.wrong(loss, gradients, kept, statistics)
        return self._next(step, self._together(reason), loss, gradients, kept, statistics)

    def _tensors(self):
        state = [v for s in self.optimizer.state.values() for v in s.values() if isinstance(v, torch.Tensor)]
        return [*self.model.parameters(), *self.model.buffers(), *state]

    def _back(self):
        step, tensors, copies, random = self.saved[0]
        with torch.no_grad():
            torch._foreach_copy_(tensors, copies)
        torch.set_rng_state(random)
        known = {id(tensor) for tensor in tensors}
        for parameter, state in list(self.optimizer.state.items()):  # what the steps since then have made is not there
            if any(isinstance(v, torch.Tensor) and id(v) not in known for v in state.values()):
                del self.optimizer.state[parameter]
        self.free += [old for _, _, old, _ in self.saved]
        self.saved = []
        self.ranges = self._kept()
        return step

    def _kept(self):
        """By name: rule, least and greatest element of what the optimiser keeps."""
        found = {}
        for group in self.optimizer.param_groups:
            for p in group["params"]:
                for slot, value in self.optimizer.state.get(p, {}).items():
                    if slot in self.rules and isinstance(value, torch.Tensor):
                        found[f"{self.names[p]}.{slot}"] = (self.rules[slot], *_range(value))
        return found

    def _with_before(self, kept):
        found = {}
        factor = self.optimizer.param_groups[0].get("momentum", 0.0)
        for name, (rule, low, high) in kept.items():
            _, low_before, high_before = self.ranges.get(name, (rule, 0.0, 0.0))
            found[name] = (rule, low, high, low_before, high_before, factor, 1.0, name.rpartition(".")[0])
        return found

    def _statistics(self):
        """Least and greatest element of the statistics of the batch, which moving ones show."""
        before = {id(tensor): copy for tensor, copy in zip(*self.saved[-1][1:3])} if self.norms else {}
        found = {}
        for name, module in self.norms.items():
            for key in ("running_mean", "running_var"):
                now = getattr(module, key)
                part = module.momentum
                found[f"{name}.{key}"] = _range((now.double() - (1 - part) * before[id(now)].double()) / part)
        return found

    def _together(self, reason):
        """The reason of any rank; replicas whose parameters differ are one."""
        if not self.replicas:
            return reason
        import torch.distributed as dist

        sums = torch.stack([p.detach().double().sum() for p in self.names])
        least, most = sums.clone(), sums.clone()
        dist.all_reduce(least, dist.ReduceOp.MIN)
        dist.all_reduce(most, dist.ReduceOp.MAX)
        flag = torch.tensor(float(bool(reason)))
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        for name, low, high in zip(self.names.values(), least, most):
            if low != high:
                return reason or f"replicas differ in {name}"
        return reason or ("another rank found something" if flag else "")


def _range(value):
    low, high = torch.aminmax(value.detach())
    return low.item(), high.item()
