"""What gradients, what optimisers keep of them, and moving statistics may be, by what they were in the steps before.

A gradient has no bound that training could not break; it is held to MARGIN times the greatest magnitude that any
element of the same parameter's had in the steps so far. What optimisers keep follows from the gradients by their
recurrences, so that its bounds are exact, but for rounding; with G the greatest magnitude of all gradients so far:

mean      m = b m + (1 - b) g                   |m| <= G: the weights of the g add up to 1 - b^t (D. P. Kingma, J. Ba,
                                                Adam, 2015, algorithm 1 and section 3)
square    v = b v + (1 - b) g^2                 0 <= v <= G^2, likewise (Adam; T. Tieleman, G. Hinton, RMSprop, 2012)
sum       s = s + g^2                           s does not fall, and rises by G^2 at most (J. Duchi et al., 2011)
momentum  u = b u + r g                         |u| <= b |u before| + r G (B. T. Polyak, 1964)

A loss has no bound, either, and fault-free training has jumps as large as faults. It is doubted where it is more than
JUMP times the greatest of the last RECENT steps: running two iterations again decides, since what is fault-free comes
again, bit for bit in a framework's deterministic mode, and is believed. A doubt costs time and nothing else, so that it
may be raised early.

A moving statistic is r = (1 - p) r + p s, so that the statistic of the batch, s, is known from r before and after.
Variances are not negative; both are held to MARGIN times the greatest so far."""

import math

MARGIN = 8.0
"""In 150 fault-free runs on digits no gradient was more than 2.0 times the greatest before, no statistic 1.3 times."""
WARM = 8
"""Steps before there is something to hold gradients and statistics to; what is not finite is found in them, too."""
SLACK = 1e-4
"""Of rounding, relative: float32 has 6e-8, and a recurrence of a thousand steps a thousand of them."""


RECENT = 8
JUMP = 2.0
"""In 105 fault-free runs on digits, of five optimisers, one step in 400 had such a loss; of 17 faults of the forward
pass that make training worse, and whose gradients are of ordinary size, the least had 2.7 times."""


BACK = 2
"""Iterations to go back: the one in which something shows, and the one before it."""


class Bounds:
    """By name: the greatest magnitudes so far, `greatest`; and the last `losses`. All are numbers, so that they can be
    stored and given back."""

    def __init__(self, margin=MARGIN, warm=WARM):
        self.margin, self.warm, self.steps = margin, warm, 0
        self.greatest, self.losses = {}, []

    def wrong(self, loss, gradients, kept, statistics):
        """Why a step is not believed ("" where it is). loss: a number; gradients, statistics: (least, greatest element)
        by name, statistics of the batch, variances by names that end in `var` or `variance`; kept: by name, each (rule,
        least, greatest, least before, greatest before, factor b, rate r, name of the parameter)."""
        if not math.isfinite(loss):
            return f"the loss is {loss}"
        if len(self.losses) == RECENT and loss > JUMP * max(self.losses):
            return f"the loss is {loss:.3g}, at most {JUMP * max(self.losses):.3g}"
        for name, (low, high) in gradients.items():
            if not (math.isfinite(low) and math.isfinite(high)):
                return f"the gradient of {name} is not finite"
            most = self.margin * self.greatest.get(name, math.inf)
            if self.steps >= self.warm and max(-low, high) > most:
                return f"the gradient of {name} is {max(-low, high):.3g}, at most {most:.3g}"
        for name, (low, high) in statistics.items():
            if not (math.isfinite(low) and math.isfinite(high)):
                return f"{name} is not finite"
            size = max(-low, high)
            if name.endswith(("var", "variance")) and low < -SLACK * max(size, self.greatest.get(name, 0.0)):
                return f"{name} of the batch is {low:.3g}"
            most = self.margin * self.greatest.get(name, math.inf)
            if self.steps >= self.warm and size > most:
                return f"{name} of the batch is {size:.3g}, at most {most:.3g}"
        for name, (rule, low, high, low_before, high_before, factor, rate, parameter) in kept.items():
            if not (math.isfinite(low) and math.isfinite(high)):
                return f"{name} is not finite"
            most = self.greatest.get(parameter, 0.0)
            if parameter in gradients:
                most = max(most, -gradients[parameter][0], gradients[parameter][1])
            low_most, high_most = limits(rule, most, low_before, high_before, factor, rate)
            room = SLACK * max(abs(low_most), abs(high_most))
            if low < low_most - room or high > high_most + room:
                return f"{name} is {low:.3g} to {high:.3g}, not within {low_most:.3g} to {high_most:.3g}"
        return ""

    def accept(self, loss, gradients, kept, statistics):
        """Take the numbers of a step that is believed into account."""
        self.steps += 1
        self.losses = [*self.losses, loss][-RECENT:]
        for name, (low, high) in (*gradients.items(), *statistics.items()):
            self.greatest[name] = max(self.greatest.get(name, 0.0), -low, high)

    def numbers(self):
        """All of it in one list: the greatest in the order of their names, then the losses."""
        return [*(self.greatest[name] for name in sorted(self.greatest)), *self.losses]

    def resume(self, names, numbers):
        """Go on with what `numbers` gave, of these names; there have been enough steps."""
        self.greatest, self.losses = dict(zip(sorted(names), numbers)), list(numbers[len(names) :])
        self.steps = self.warm

    def begin(self, parameter, rule, low, high):
        """What an optimiser that is resumed keeps of a parameter shows that its gradients have been."""
        size = max(-low, high)
        seen = {"mean": size, "square": math.sqrt(max(size, 0.0)), "sum": math.sqrt(max(size, 0.0))}.get(rule, 0.0)
        self.greatest[parameter] = max(self.greatest.get(parameter, 0.0), seen)


class Watch:
    """What guards have in common: which step is run next. `alarms` lists steps that were run again and why, `repeated`
    those of them that came out the same, which no passing fault was in. A guard says what the optimiser keeps, (rule,
    least, greatest element) by name (`_kept`), and goes back (`_back`, which returns the step)."""

    def __init__(self, bounds):
        self.bounds = bounds or Bounds()
        self.alarms, self.repeated = [], []
        self.doubted = None  # the step that is run again
        self.ranges = self._kept()
        if self.bounds.steps == 0:
            for name, (rule, low, high) in self.ranges.items():
                self.bounds.begin(name.rpartition(".")[0], rule, low, high)

    def _next(self, step, reason, loss, gradients, kept, statistics):
        """One further; where there is a reason not to believe the step, the one that is gone back to. What is wrong
        again is believed."""
        if reason and self.doubted == step:
            self.repeated.append((step, reason))
            reason = ""
        if reason:
            self.alarms.append((step, reason))
            self.doubted = step
            return self._back()
        if self.doubted == step:
            self.doubted = None
        self.bounds.accept(loss, gradients, kept, statistics)
        self.ranges = {name: value[:3] for name, value in kept.items()}
        return step + 1


def limits(rule, most, low_before, high_before, factor, rate):
    """What is kept may be, by its rule. most: the greatest magnitude of gradients; before: of what was kept."""
    if rule == "mean":
        return -most, most
    if rule == "square":
        return 0.0, most * most
    if rule == "sum":
        return low_before, high_before + most * most
    size = factor * max(-low_before, high_before) + rate * most
    return -size, size
