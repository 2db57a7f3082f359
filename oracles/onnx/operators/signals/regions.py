"""Regions of images: what is pooled in them, and which of them are kept."""

from __future__ import annotations

import numpy as np

from oracles.onnx.operators.arguments import integers, refuse
from oracles.onnx.rule import Call, Value


def _sampled(image: np.ndarray, y: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Channels by rows by columns, between elements linearly; 0 from one element outside on."""
    weights = []
    for places, size in ((y, image.shape[1]), (x, image.shape[2])):
        outside = (places < -1) | (places > size)
        near = np.clip(places, 0, size - 1)
        distance = np.abs(near[:, None] - np.arange(size)[None])
        weights.append(np.where(outside[:, None], 0, np.maximum(0, 1 - distance)))
    return weights[0] @ image @ weights[1].T


def _roi_align(call: Call) -> list[Value]:
    """The average or the greatest of the sampled values in each bin. Since version 16 the coordinates are shifted by
    half an element unless asked otherwise; where they are not, a region is at least one element wide."""
    x, rois, batch = call.input(0), call.input(1), integers(call.input(2))
    height, width = call.get("output_height", 1), call.get("output_width", 1)
    mode, scale, ratio = call.get("mode", "avg"), call.get("spatial_scale", 1.0), call.get("sampling_ratio", 0)
    shifts = call.version >= 16 and call.get("coordinate_transformation_mode", "half_pixel") == "half_pixel"
    if mode not in ("avg", "max"):
        raise refuse(call, f"mode {mode!r}")
    result = np.zeros((len(batch), x.shape[1], height, width))
    for number, (roi, sample) in enumerate(zip(rois, batch, strict=True)):
        places, counts = [], []
        for low, high, bins in ((roi[1], roi[3], height), (roi[0], roi[2], width)):
            start, end = low * scale - 0.5 * shifts, high * scale - 0.5 * shifts
            length = end - start if shifts else max(end - start, 1.0)
            count = ratio if ratio > 0 else int(np.ceil(length / bins))
            step = length / bins
            places.append(
                start + np.arange(bins)[:, None] * step + (np.arange(count) + 0.5)[None] * step / max(count, 1)
            )
            counts.append(count)
        if min(counts) <= 0:
            continue  # an empty region has nothing to pool
        values = _sampled(x[sample], places[0].ravel(), places[1].ravel())
        values = values.reshape(-1, height, counts[0], width, counts[1])
        result[number] = values.mean((2, 4)) if mode == "avg" else values.max((2, 4))
    return [result]


def _corners(call: Call, boxes: np.ndarray) -> np.ndarray:
    """Boxes as (low, low, high, high)."""
    if call.get("center_point_box", 0):
        centre, half = boxes[..., :2], boxes[..., 2:] / 2
        return np.concatenate([centre - half, centre + half], -1)
    return np.concatenate([np.minimum(boxes[..., :2], boxes[..., 2:]), np.maximum(boxes[..., :2], boxes[..., 2:])], -1)


def _overlap(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union; 0 where a box has no area."""
    sides = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    shared = np.prod(np.maximum(sides, 0), -1)
    areas = np.prod(others[:, 2:] - others[:, :2], -1)
    area = np.prod(box[2:] - box[:2])
    union = area + areas - shared
    return np.where((area > 0) & (areas > 0), shared / np.where(union > 0, union, 1), 0)


def _suppressed(call: Call) -> list[Value]:
    """By batch and class: the best boxes that overlap no better one by more than the threshold, best first, the first
    of equal ones first."""
    boxes, scores = call.input(0), call.input(1)
    most, overlap, least = (call.input(place) for place in (2, 3, 4))
    most = 0 if most is None else integers(most)[0]
    overlap = 0.0 if overlap is None else float(np.ravel(overlap)[0])
    corners = _corners(call, boxes)
    chosen = []
    for batch, kind in np.ndindex(*scores.shape[:2]):
        rank = scores[batch, kind]
        order = np.argsort(-rank, kind="stable")
        if least is not None:
            order = order[rank[order] >= float(np.ravel(least)[0])]
        kept: list[int] = []
        while order.size and len(kept) < most:
            best, order = order[0], order[1:]
            kept.append(int(best))
            order = order[_overlap(corners[batch, best], corners[batch, order]) <= overlap]
        chosen.extend((batch, kind, place) for place in kept)
    return [np.array(chosen, np.int64).reshape(-1, 3)]


def _max_roi_pool(call: Call) -> list[Value]:
    raise refuse(call, "the text does not say how regions are rounded to elements")


RULES = {"MaxRoiPool": _max_roi_pool, "NonMaxSuppression": _suppressed, "RoiAlign": _roi_align}
