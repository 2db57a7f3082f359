"""Planted faults of distribution strategies: what a wrong implementation would do, as a change of its pieces."""

from __future__ import annotations

from planted.faults.strategy_fault import StrategyFault

_LOSS = "(loss * FACTOR(world)).backward()"
_SHARE = "return np.array_split(part, world)[rank]"
_WRAPPED = "    return subject, optimizer_of"
_REDUCED = "dist.all_reduce(parameter.grad)"
_APPLIED = "subject.optimizer.apply(gradients, subject.trained)"
_REPLICA = "tf.distribute.get_replica_context().replica_id_in_sync_group"

FAULTS = (
    # what the loss counts
    StrategyFault("the loss is not scaled by the ranks", "torch-ddp", "backward", _LOSS, "loss.backward()"),
    StrategyFault(
        "each rank divides by its own samples", "torch-ddp", "backward", _LOSS,
        "(loss * FACTOR(world) / max(1, len(x))).backward()",
    ),
    StrategyFault(
        "the loss is averaged over the ranks twice", "torch-fully-shard", "backward", _LOSS, "loss.backward()"
    ),
    StrategyFault("the reported loss is one rank's", "torch-ddp", "summed", "dist.all_reduce(value)", "pass"),
    StrategyFault(
        "the reported loss is a mean", "torch-ddp", "summed", "    return value", "    return value / world"
    ),
    # which samples
    StrategyFault("the last sample of a batch is dropped", "torch-ddp", "share", "split(part,", "split(part[:-1],"),
    StrategyFault(
        "uneven batches are cut", "torch-ddp", "share", _SHARE,
        "return part[rank * (len(part) // world):(rank + 1) * (len(part) // world)]",
    ),
    StrategyFault(
        "uneven batches are filled up", "torch-ddp", "share", _SHARE,
        "n = -(-len(part) // world)\n    return np.resize(part, n * world)[rank * n:(rank + 1) * n]",
    ),
    StrategyFault("all ranks see the first share", "torch-ddp", "share", "[rank]", "[0]"),
    StrategyFault("all ranks see the whole batch", "torch-ddp", "share", _SHARE, "return part"),
    StrategyFault("shares overlap", "torch-fsdp", "share", _SHARE, "return part[max(0, rank - 1)::world]"),
    # gradients between ranks
    StrategyFault(
        "one rank's gradient is dropped", "torch-all-reduce", "backward", _REDUCED,
        "parameter.grad.mul_(dist.get_rank() > 0)\n                " + _REDUCED,
    ),
    StrategyFault(
        "a bucket is reduced twice", "torch-all-reduce", "backward", _REDUCED, f"{_REDUCED}; {_REDUCED}"
    ),
    StrategyFault("no gradient is reduced", "torch-all-reduce", "backward", "    if last:", "    if False:"),
    StrategyFault(
        "gradients are averaged, not added", "torch-all-reduce", "backward", _REDUCED,
        f"{_REDUCED}; parameter.grad.div_(world)",
    ),
    StrategyFault(
        "one rank's gradient is off by a millionth", "torch-all-reduce", "backward", _REDUCED,
        f"{_REDUCED}; parameter.grad.mul_(1 + 2.0**-20 * (dist.get_rank() == 1))",
    ),
    StrategyFault(
        "the greatest gradient wins", "torch-all-reduce", "backward", _REDUCED,
        "dist.all_reduce(parameter.grad, dist.ReduceOp.MAX)",
    ),
    StrategyFault(
        "biases are not reduced", "torch-all-reduce", "backward",
        "if parameter.requires_grad and parameter.grad is not None:",
        "if parameter.requires_grad and parameter.grad is not None and parameter.ndim > 1:",
    ),
    StrategyFault(
        "gradients are reduced after every part", "torch-all-reduce", "backward", "    if last:", "    if True:"
    ),
    StrategyFault(
        "gradients travel as float16", "torch-all-reduce", "backward", _REDUCED,
        f"parameter.grad.copy_(parameter.grad.half().to(DTYPE)); {_REDUCED}",
    ),
    StrategyFault(
        "gradients travel as bfloat16", "torch-all-reduce", "backward", _REDUCED,
        f"parameter.grad.copy_(parameter.grad.bfloat16().to(DTYPE)); {_REDUCED}",
    ),
    StrategyFault(
        "parts are not added up", "torch-ddp-no-sync", "backward", "    with contextlib",
        "    subject.zero_grad()\n    with contextlib",
    ),
    StrategyFault(
        "the hook forgets the mean", "torch-ddp-hook", "distribute", "default_hooks.allreduce_hook",
        "lambda state, bucket: dist.all_reduce(bucket.buffer(), async_op=True).get_future()"
        ".then(lambda f: f.value()[0])",
    ),
    StrategyFault(
        "the hook's group is one rank", "torch-ddp-post-local", "distribute", "dist.group.WORLD",
        "dist.new_subgroups(1)[0]",
    ),
    StrategyFault(
        "parameters are never averaged", "torch-local-sgd", "distribute", "(period=1)", "(period=1, warmup_steps=10**9)"
    ),
    # parameters and optimiser
    StrategyFault(
        "a frozen parameter is trained", "torch-ddp", "distribute", "    subject = ",
        "    for parameter in model.parameters():\n        parameter.requires_grad_(True)\n    subject = ",
    ),
    StrategyFault(
        "ranks begin with parameters of their own", "torch-all-reduce", "distribute", "    subject = model",
        "    with torch.no_grad():\n        for parameter in model.parameters():\n"
        "            parameter.add_(0.01 * rank)\n    subject = model",
    ),
    StrategyFault(
        "the last parameter is not optimised", "torch-ddp", "distribute", "optimizer_of(subject.parameters())",
        "optimizer_of(list(subject.parameters())[:-1] or list(subject.parameters()))",
    ),
    StrategyFault(
        "the learning rate grows with the ranks", "torch-ddp", "distribute", "optimizer_of(subject.parameters())",
        "OPTIMIZER(subject.parameters(), **{**OPTIONS, 'lr': OPTIONS['lr'] * world})",
    ),
    StrategyFault(
        "the optimiser is another one", "torch-ddp", "distribute", "optimizer_of(subject.parameters())",
        "torch.optim.SGD(subject.parameters(), lr=OPTIONS['lr'])",
    ),
    StrategyFault(
        "optimiser state is one rank's", "torch-ddp-zero", "states", "        if rank == dist.get_rank():",
        "        kept = {}\n        if rank == dist.get_rank() == 0:",
    ),
    StrategyFault(
        "optimiser state is not gathered", "torch-fully-shard", "states", "= whole(value)",
        "= value.to_local() if isinstance(value, DTensor) else value",
    ),
    StrategyFault(
        "parameters are not gathered", "torch-fully-shard", "parameters", "whole(parameter)",
        "parameter.to_local() if isinstance(parameter, DTensor) else parameter",
    ),
    StrategyFault(
        "each rank clips for itself", "torch-all-reduce", "backward", _LOSS,
        f"{_LOSS}\n    torch.nn.utils.clip_grad_norm_(subject.parameters(), 0.125)",
    ),
    # stages, and tensors that are spread
    StrategyFault(
        "the parts of a batch are averaged", "torch-pipeline-gpipe", "distribute", "scale_grads=False",
        "scale_grads=True",
    ),
    StrategyFault(
        "the loss is that of the first part", "torch-pipeline-1f1b", "backward",
        "sum(loss.detach() for loss in losses)", "losses[0].detach()",
    ),
    StrategyFault(
        "a stage optimises its first parameter only", "torch-pipeline-1f1b", "distribute", "== rank])", "== rank][:1])"
    ),
    StrategyFault(
        "the loss is that of a rank's samples", "torch-dtensor-data", "backward", "loss.detach().full_tensor()",
        "loss.detach().to_local()",
    ),
    StrategyFault(
        "the loss is counted by both ranks that share layers", "torch-fully-shard-tensor", "summed", "return value / 2",
        "return value",
    ),
    StrategyFault(
        "gradients of the last part are not synchronised", "torch-fully-shard-no-sync", "backward",
        "set_requires_gradient_sync(last)", "set_requires_gradient_sync(False)",
    ),
    # devices of one process
    StrategyFault(
        "mapped devices average", "jax-pmap", "added", 'jax.lax.psum(value, "d")',
        'jax.lax.pmean(value, "d")',
    ),
    StrategyFault(
        "devices keep their gradients", "jax-shard-map", "gradient", "loss, found = added((loss, found))",
        "loss = added(loss)",
    ),
    StrategyFault(
        "devices average", "jax-shard-map", "added", 'jax.lax.psum(value, "d")',
        'jax.lax.pmean(value, "d")',
    ),
    StrategyFault(
        "a device leaves samples out", "jax-shard-map", "gradient",
        "criterion({**p, **t}, b, x, y, coefficient)",
        "criterion({**p, **t}, b, x, y, coefficient * (jax.lax.axis_index('d') > 0))",
    ),
    StrategyFault(
        "running statistics are the last device's", "jax-shard-map", "gradient", 'all_gather(value, "d")[0]',
        'all_gather(value, "d")[-1]', "batch_norm",
    ),
    # replicas and workers of TensorFlow
    StrategyFault(
        "replicas average", "tf-mirrored-reduction", "update", "apply(gradients,",
        "apply([g if g is None else g / strategy.num_replicas_in_sync for g in gradients],",
    ),
    StrategyFault(
        "a replica's gradient is dropped", "tf-mirrored-reduction", "update", "apply(gradients,",
        f"apply([g if g is None else g * tf.cast({_REPLICA} > 0, DTYPE) for g in gradients],",
    ),
    StrategyFault(
        "replicas send bfloat16", "tf-mirrored-reduction", "update", "apply(gradients,",
        "apply([g if g is None else tf.cast(tf.cast(g, 'bfloat16'), DTYPE) for g in gradients],",
    ),
    StrategyFault(
        "replicas train what is frozen", "tf-mirrored-reduction", "update", _APPLIED,
        f"{_APPLIED}\n    for name in FROZEN:\n        subject.p[name].assign(subject.p[name] * 0.99)",
    ),
    StrategyFault(
        "each replica divides by its own samples", "tf-mirrored-reduction", "gradient", "y, coefficient)\n    found",
        "y, coefficient) / tf.cast(tf.maximum(tf.shape(x)[0], 1), DTYPE)\n    found",
    ),
    StrategyFault("uneven shares of replicas are cut", "tf-mirrored-reduction", "feed", "np.array_split(rows,",
        "np.array_split(rows[:len(rows) // len(DEVICES) * len(DEVICES)],",
    ),
    StrategyFault("the loss of replicas is a mean", "tf-mirrored-reduction", "summed", '"SUM"', '"MEAN"'),
    StrategyFault(
        "the rate grows with the replicas", "tf-mirrored-reduction", "optimizer_of", "OPTIMIZER(**OPTIONS)",
        "OPTIMIZER(**{**OPTIONS, 'learning_rate': OPTIONS['learning_rate'] * len(DEVICES)})",
    ),
    StrategyFault(
        "replicas use stale statistics", "tf-mirrored-sync-norm", "gradient", "subject.norms, x, True)",
        "subject.norms, x, False)",
    ),
    StrategyFault(
        "statistics are not synchronised", "tf-mirrored-sync-norm", "normalisation", "synchronized=True",
        "synchronized=False",
    ),
    StrategyFault(
        "a worker has the first one's samples", "tf-multi-worker-sync-norm", "feed",
        "shares[context.replica_id_in_sync_group]", "shares[0]",
    ),
    StrategyFault(
        "the last worker's gradient is lost", "tf-parameter-server", "compile_step", "for value in waited]",
        "for value in waited[: len(waited) - len(waited) // 2]]",
    ),
    # the penalty, and what Keras reports
    StrategyFault(
        "the penalty is every replica's", "tf-mirrored", "share", "tf.nn.scale_regularization_loss(penalty)", "penalty",
        "penalised",
    ),
    StrategyFault(
        "a regulariser is forgotten", "tf-fit-mirrored", "variables", "if PENALTY else None", "if False else None",
        "penalised",
    ),
    StrategyFault(
        "an epoch reports its loss without weights", "tf-fit-mirrored", "reported", "size, sample_weight=coefficient, "
        "shuffle", "size, shuffle",
    ),
    StrategyFault(
        "what an epoch reports is off by 1e-5", "tf-fit-mirrored", "reported", "values[0], DTYPE)",
        "values[0], DTYPE) * np.asarray(1 + 1e-5, DTYPE)",
    ),
    StrategyFault(
        "Keras averages the loss", "tf-fit-mirrored", "optimizer_of", "    subject.model.compile",
        "    LOSS.reduction = 'sum_over_batch_size'\n    subject.model.compile",
    ),
    # statistics
    StrategyFault(
        "running statistics stay apart", "torch-ddp", "distribute", "DistributedDataParallel(model,",
        "DistributedDataParallel(model, broadcast_buffers=False,",
    ),
    StrategyFault(
        "batch statistics are stale", "torch-ddp", "backward", "    loss = criterion(subject(x), y, coefficient)",
        "    subject.eval()\n    loss = criterion(subject(x), y, coefficient)\n    subject.train()",
    ),
    StrategyFault(
        "predictions use batch statistics", "torch-ddp", "predict", "    return subject(x)",
        "    subject.train()\n    return subject(x)",
    ),
    # checkpoints
    StrategyFault(
        "the optimiser begins anew", "torch-resume-ddp-fully-shard", "resumed", "    dist.barrier()",
        "    optimizer = optimizer_of(subject.parameters())\n    dist.barrier()", "adam",
    ),
    StrategyFault(
        "parameters are not resumed", "torch-resume-fully-shard-alone", "resumed", "checkpoint.load(own,",
        'checkpoint.load({"optimizer": own["optimizer"]},',
    ),
    StrategyFault(
        "the optimiser begins anew in JAX", "jax-resume-data-fsdp", "resumed",
        "{name: spread(state) for name, state in states.items()}", "{}", "adam",
    ),
    StrategyFault(
        "the optimiser begins anew in TensorFlow", "tf-resume-mirrored-one-device", "resumed",
        ", optimizer=subject.optimizer)", ")", "adam",
    ),
    StrategyFault(
        "workers begin the optimiser anew", "tf-resume-multi-worker", "resumed", ", optimizer=subject.optimizer)", ")",
        "adam",
    ),
    # meshes
    StrategyFault(
        "the mesh keeps running statistics of the step before", "tf-dtensor-data", "normalisation",
        "kept * 0.9 + new * 0.1", "kept * 1.0", "batch_norm",
    ),
    StrategyFault(
        "servers move running statistics once", "tf-parameter-server", "normalisation", "1, 0.9, 1e-5",
        "1, 0.95, 1e-5", "batch_norm",
    ),
    StrategyFault(
        "the mesh keeps the parameters that it began with", "tf-dtensor-data", "compile_step",
        "subject.spread[name].assign(weight(variable))", "pass",
    ),
    StrategyFault(
        "the mesh has the first samples twice", "tf-dtensor-data", "feed", "[rows]",
        "[rows // 2 * 2]",
    ),
    StrategyFault(
        "some samples count nothing", "keras-model", "feed", "for array in arrays]",
        "for array in (*arrays[:2], arrays[2] * (np.arange(len(arrays[2])) > 0))]",
    ),
    StrategyFault(
        "Keras on JAX averages the loss", "keras-fit-data", "compile_model", "    subject.compile",
        "    LOSS.reduction = 'sum_over_batch_size'\n    subject.compile",
    ),
    # layers of several parameters, masks, optimisers
    *(
        StrategyFault(
            f"gradients of {what} are not reduced", "torch-all-reduce", "backward",
            "        for parameter in subject.parameters():",
            f"        kinds = [part for part in subject.modules() if isinstance(part, {kind})]\n"
            "        left = [id(p) for part in kinds for p in part.parameters()]\n"
            "        for parameter in (p for p in subject.parameters() if id(p) not in left):", trait,
        )
        for what, kind, trait in (
            ("tables", "torch.nn.EmbeddingBag", "embedding_bag"),
            ("recurrent layers", "torch.nn.RNNBase", "lstm"),
            ("attention", "torch.nn.MultiheadAttention", "attention"),
        )
    ),
    *(
        StrategyFault(
            what, "torch-ddp", "distribute", "    subject = ",
            "    for part in model.children():\n        if type(part).__name__ == 'Masked':\n"
            f"            part.forward = {masked}\n    subject = ", "dropout",
        )
        for what, masked in (
            ("each rank draws masks of its own",
             "lambda x, mask: torch.nn.functional.dropout(x, 0.5, model.training)"),
            ("samples have each other's masks", "lambda x, mask, own=part.forward: own(x, mask.flip(0))"),
            ("predictions are masked, too", "lambda x, mask: x * mask.reshape(x.shape)"),
        )
    ),
    StrategyFault(
        "LAMB is Adam", "tf-mirrored-reduction", "optimizer_of", "OPTIMIZER(**OPTIONS)",
        "(keras.optimizers.Adam if OPTIMIZER is keras.optimizers.Lamb else OPTIMIZER)(**OPTIONS)", "lamb",
    ),
    # mixed precision, ranks that leave, matrices of low rank, pipelines of replicas, times
    StrategyFault(
        "parameters are kept in bfloat16", "torch-fully-shard-bfloat16", "distribute", "    mesh = init",
        "    for parameter in model.parameters():\n        parameter.data = parameter.data.bfloat16().float()\n"
        "    mesh = init",
    ),
    StrategyFault(
        "the optimiser steps in bfloat16", "torch-ddp", "distribute", "optimizer_of(subject.parameters())",
        "(lambda o: (o.register_step_post_hook(lambda *_: [p.data.copy_(p.data.bfloat16()) "
        "for p in o.param_groups[0]['params']]), o)[1])(optimizer_of(subject.parameters()))", "mixed",
    ),
    StrategyFault(
        "a stage steps in bfloat16", "torch-pipeline-gpipe", "distribute", "optimizer_of([p for",
        "(lambda own: (lambda o: (o.register_step_post_hook(lambda *_: [p.data.copy_(p.data.bfloat16()) for p in own]),"
        " o)[1])(optimizer_of(own)))([p for", "mixed",
    ),
    StrategyFault(
        "JAX begins with parameters in bfloat16", "jax-data", "spread", "placed(value)",
        "placed(jnp.asarray(value, 'bfloat16').astype(value.dtype))", "mixed",
    ),
    StrategyFault(
        "variables are kept in bfloat16", "tf-mirrored-bfloat16", "update", _APPLIED,
        f"{_APPLIED}\n    for v in subject.trained:\n        v.assign(tf.cast(tf.cast(v, 'bfloat16'), DTYPE))",
    ),
    StrategyFault(
        "the optimiser gets scaled gradients", "tf-mirrored-float16", "update", "subject.optimizer.apply(",
        "subject.optimizer.inner_optimizer.apply(",
    ),
    StrategyFault(
        "ranks that left are counted", "torch-ddp-join-left", "distribute", "initial_world_size=False",
        "initial_world_size=True",
    ),
    StrategyFault(
        "ranks that left are not counted", "torch-ddp-join", "distribute", "initial_world_size=True",
        "initial_world_size=False",
    ),
    StrategyFault(
        "what is left is not fed back", "torch-ddp-power", "distribute", "min_compression_rate",
        "use_error_feedback=False, min_compression_rate",
    ),
    StrategyFault(
        "matrices begin otherwise", "torch-ddp-power-two", "distribute", "min_compression_rate",
        "random_seed=1, min_compression_rate",
    ),
    StrategyFault(
        "replicas of a stage keep their gradients", "torch-pipeline-ddp", "distribute", 'mesh["data"].get_group()',
        "dist.new_subgroups(1)[0]",
    ),
    StrategyFault(
        "the loss of a pipeline is a mean over replicas", "torch-pipeline-fully-shard", "backward",
        "return loss * FACTOR(dist.get_world_size())", "return loss",
    ),
    StrategyFault(
        "gradients of times are added up by all ranks", "torch-sequence-rows", "distribute", "whole(result))",
        "result.full_tensor(grad_placements=[torch.distributed.tensor.Partial()]))",
    ),
    # layers in parts
    StrategyFault(
        "the bias is added by every rank", "torch-tensor-rows", "distribute", "    plan = ",
        "    for layer in model.children():\n        if getattr(layer, 'bias', None) is not None and isinstance(layer, "
        "torch.nn.Linear):\n            layer.bias.data.mul_(world)\n    plan = ",
    ),
)  # fmt: skip
