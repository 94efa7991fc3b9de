"""Shows a PyTorch training in the panels of `perflings watch` while it runs.

    import perflings
    run = perflings.watch(model, optimizer, data=loader, classes=vocabulary)
    for batch in run.data: ...

`watch` does nothing unless PERFLINGS_WATCH names a folder, as `perflings watch -- python train.py` sees to. It never stops the training:
what goes wrong here is told once on stderr, and the training goes on without being watched. It never waits for the device, except in a
step that it profiles, at most one a minute. Call it after `torch.compile` and after the model was wrapped (DDP, FSDP).

Only the process that calls `watch` writes. Times of phases are the host's; on a GPU they are read from events of the device, a little
later. The lines that are written are described in docs/watch.md.
"""

import atexit
import inspect
import json
import math
import os
import queue
import socket
import sys
import threading
import time
from contextlib import contextmanager

PHASES = ("data", "forward", "backward", "communication", "optimizer")
#: Gradients and memory are looked at in the first steps and then every so many seconds.
FIRST_LOOKS = 3
LOOK_EVERY_S = 10.0
#: A profile comes at most every so many seconds, and may cost this share of the time until the next one.
PROFILE_AFTER_S = 10.0
PROFILE_EVERY_S = 60.0
PROFILE_SHARE = 0.01
#: Being watched may take this share of a step.
OWN_SHARE = 0.01

_now = time.perf_counter


def watch(model, optimizer, data=None, **options):
    """Watches a training, if PERFLINGS_WATCH names a folder.

    `data` is the loader that the training loop iterates; iterate `run.data` in its place. The options are
    `classes`: the number of classes or tokens that the loss chooses from; with it the first loss can be judged;
    `samples`: those of one step in this process; a loader tells them;
    `name`: what the run is called, else the script;
    `step`: where a training goes on that was begun before; where the optimizer's state tells it, it need not be given.
    """
    folder = os.environ.get("PERFLINGS_WATCH")
    if folder:
        try:
            return _Run(model, optimizer, data, folder, **options)
        except Exception as error:  # noqa: BLE001
            _warn(f"the training is not watched: {type(error).__name__}: {error}")
    return _Unwatched(data)


def _warn(text):
    print(f"perflings: {text}", file=sys.stderr)


class _Unwatched:
    """What `watch` returns where nothing is watched: it gives everything back as it came."""

    def __init__(self, data):
        self.data = data

    def loss(self, loss):
        return loss

    @contextmanager
    def phase(self, _name):
        yield

    def close(self, _why=None):
        pass


class _Lines:
    """Writes lines on a thread of its own, so that a slow disk delays no step. Every two seconds without a line it says what the process
    is doing."""

    def __init__(self, path, doing):
        self.began, self.doing, self.broken = _now(), doing, False
        self.file = open(path, "a", encoding="utf-8")
        self.waiting = queue.SimpleQueue()
        self.thread = threading.Thread(target=self._write, name="perflings", daemon=True)
        self.thread.start()

    def add(self, event, **parts):
        if not self.broken and self.waiting.qsize() < 10_000:
            line = {"t": round(_now() - self.began, 6), "event": event}
            line.update((key, part) for key, part in parts.items() if part is not None)
            self.waiting.put(line)

    def _write(self):
        try:
            while True:
                try:
                    line = self.waiting.get(timeout=2.0)
                except queue.Empty:
                    line = {"event": "alive", "phase": self.doing()}
                if line is None:
                    break
                self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
                if self.waiting.empty():
                    self.file.flush()
                    time.sleep(0.05)
            self.file.flush()
        except Exception as error:  # noqa: BLE001
            self.broken = True
            _warn(f"no more lines are written: {error}")


class _Clock:
    """Moments of the host and, on a GPU, of the device's stream; and values of the device, read once they have arrived."""

    def __init__(self, torch, device):
        self.torch, self.cuda, self.pending = torch, device.type == "cuda", []

    def mark(self):
        if not self.cuda or self.torch.cuda.is_current_stream_capturing():
            return _now(), None
        event = self.torch.cuda.Event(enable_timing=True)
        event.record()
        return _now(), event

    def copy(self, tensor):
        """The tensor in host memory, complete once the next mark is over."""
        tensor = tensor.detach().float()
        if tensor.device.type != "cuda":
            return tensor.clone()
        host = self.torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        return host.copy_(tensor, non_blocking=True)

    def later(self, read, mark=None):
        """Calls `read` once everything before this moment, or before a mark, is done on the device."""
        self.pending.append(((mark or self.mark())[1], read))

    def poll(self, all_of_them=False):
        while self.pending and (all_of_them or self.pending[0][0] is None or self.pending[0][0].query()):
            event, read = self.pending.pop(0)
            if all_of_them and event is not None:
                event.synchronize()
            read()


def _ms(begin, end):
    """Milliseconds between two marks, on the device's clock where both have one."""
    if begin[1] is not None and end[1] is not None:
        return begin[1].elapsed_time(end[1])
    return 1e3 * (end[0] - begin[0])


def _number(value):
    """JSON has no NaN and no infinity; the reader takes them as text."""
    return value if math.isfinite(value) else str(value)


class _Data:
    """The loader, with the time that the training waits for its batches. Everything else of it is as before."""

    def __init__(self, run, loader):
        self._run, self._loader = run, loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def __len__(self):
        return len(self._loader)

    def __iter__(self):
        batches, end = iter(self._loader), object()
        while True:
            self._run._do(self._run._open, "data", True)
            batch = next(batches, end)
            self._run._do(self._run._close, "data", True)
            if batch is end:
                return
            yield batch


class _Run:
    """A training that is watched. `parts` are the phases of the present step, each with its two marks."""

    def __init__(self, model, optimizer, data, folder, classes=None, samples=None, name=None, step=0, hooks=True, joined=None):
        import torch

        self.torch, self.model, self.optimizer, self.folder = torch, model, optimizer, folder
        self.off, self.pid, self.own_s = False, os.getpid(), 0.0
        group = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = torch.distributed.get_rank() if group else int(os.environ.get("RANK", 0))
        self.ranks = torch.distributed.get_world_size() if group else int(os.environ.get("WORLD_SIZE", 1))
        self.names = {id(p): name for name, p in model.named_parameters()}
        self.device = next((p.device for p in model.parameters()), torch.device("cpu"))
        self.clock = _Clock(torch, self.device)
        self.classes, self.name = classes, name or os.path.basename(sys.argv[0]) or "training"
        self.batch, self.samples = getattr(data, "batch_size", None), samples
        self.data = data if data is None else _Data(self, data)
        # Of the losses of accumulated batches the last one is the step's, unless a framework joins them.
        self.joined = joined or (lambda losses: losses[-1])
        self.step, self.described, self.began, self.evaluating, self.by_hand = step, False, None, None, set()
        self.parts, self.open, self.losses, self.told_loss, self.batches = [], {}, [], None, 0
        self.scale, self.skipped, self.looks, self.looked, self.reached, self.timed, self.every = None, 0, 0, -math.inf, set(), True, 1
        self.profiler, self.range, self.next_profile = None, None, _now() + PROFILE_AFTER_S
        self.lines = _Lines(os.path.join(folder, f"rank-{self.rank}.jsonl"), self._doing)
        date, host, cores = time.strftime("%Y-%m-%d", time.gmtime()), socket.gethostname(), os.cpu_count()
        self.lines.add("hello", protocol=1, version="0.1.0", pid=self.pid, host=host, os=sys.platform, cores=cores, date=date)
        self._hook(hooks)
        self._try_profile(self._prepare_profile)
        atexit.register(self.close)
        before = sys.excepthook

        def failed(kind, error, trace):
            self.close(f"{kind.__name__}: {error}"[:300])
            before(kind, error, trace)

        sys.excepthook = failed

    def _do(self, hook, *arguments):
        """Calls a hook and counts its time. A fault of ours ends the watching and never the training; a forked process does not watch."""
        if self.off or os.getpid() != self.pid:
            return
        began = _now()
        try:
            hook(*arguments)
        except Exception as error:  # noqa: BLE001
            self.off = True
            _warn(f"the training is not watched any more: {type(error).__name__}: {error}")
        self.own_s += _now() - began

    # What the training calls.

    def loss(self, loss):
        """Tells the loss of this step, where it is neither what the model returns nor what `backward` is called on."""
        self._do(self._tell, loss)
        return loss

    @contextmanager
    def phase(self, name):
        """Times a part of the step by hand: data, forward, backward, communication or optimizer."""
        if name not in PHASES:
            _warn(f"there is no phase {name!r}; there are {', '.join(PHASES)}")
        self._do(self._open, name, True)
        try:
            yield
        finally:
            self._do(self._close, name, True)

    def close(self, why=None):
        self._do(self._finish, why)
        self.off = True

    def _finish(self, why):
        self.clock.poll(all_of_them=True)
        self.lines.add("ended", step=self.step, why=why)
        self.lines.waiting.put(None)
        self.lines.thread.join(2.0)

    # Hooks.

    def _hook(self, of_model):
        if of_model:
            self.model.register_forward_pre_hook(lambda *_: self._do(self._forward))
            self.model.register_forward_hook(lambda _model, _inputs, out: self._do(self._forwarded, out))
        self.optimizer.register_step_pre_hook(lambda *_: self._do(self._stepping))
        self.optimizer.register_step_post_hook(lambda *_: self._do(self._end_step))
        autograd, scaler = self.torch.autograd, self.torch.amp.GradScaler
        backward, scale, update = autograd.backward, scaler.scale, scaler.update

        def watched_backward(tensors, *arguments, **named):
            self._do(self._backward, tensors)
            backward(tensors, *arguments, **named)
            self._do(self._close, "backward")

        def watched_scale(this, outputs):
            self._do(self._take_loss, outputs)
            return scale(this, outputs)

        def watched_update(this, *arguments, **named):
            self._do(self._updated, this)
            return update(this, *arguments, **named)

        autograd.backward, scaler.scale, scaler.update = watched_backward, watched_scale, watched_update

    def _doing(self):
        return next(reversed(list(self.open)), "evaluation" if self.evaluating else None)

    def _forward(self):
        if not (self.model.training and self.torch.is_grad_enabled()):
            self.evaluating = self.evaluating or self.clock.mark()
            return
        if self.evaluating is not None:
            if self.began is not None:
                self.parts.append(("evaluation", self.evaluating, self.clock.mark()))
            self.evaluating = None
        self.batches += 1
        self._open("forward")

    def _forwarded(self, out):
        if self.evaluating is None:
            self._close("forward")
            self._take_loss(_scalar(self.torch, out), new=True)

    def _backward(self, tensors):
        self._take_loss(tensors)
        self._open("backward")

    def _tell(self, loss):
        self.told_loss = self.clock.copy(loss) if self.torch.is_tensor(loss) else self.torch.tensor(float(loss))

    def _take_loss(self, loss, new=False):
        """Keeps a loss; one that is not of a new batch only where none is known of this batch."""
        if self.torch.is_tensor(loss) and loss.numel() == 1 and (new or len(self.losses) < max(1, self.batches)):
            self.losses.append(loss.detach())

    def _stepping(self):
        if self.profiler is None and (self.looks < FIRST_LOOKS or _now() - self.looked > LOOK_EVERY_S):
            self._look()
        self._open("optimizer")

    def _updated(self, scaler):
        # A scaler that found a gradient that is not finite leaves the optimizer's step out.
        if self.batches > 0:
            self.skipped += 1
            self._end_step()
        if getattr(scaler, "_scale", None) is not None:
            host = self.clock.copy(scaler._scale)
            self.clock.later(lambda: setattr(self, "scale", float(host)))

    def _open(self, name, by_hand=False):
        # Within a phase that is timed by hand, hooks of the same phase say nothing new.
        if self.timed and name not in self.by_hand:
            self.open[name] = self.clock.mark()
            self.began = self.began or self.open[name]
        if by_hand:
            self.by_hand.add(name)

    def _close(self, name, by_hand=False):
        if by_hand:
            self.by_hand.discard(name)
        end = None
        if name in self.open and name not in self.by_hand:
            end = self.clock.mark()
            self.parts.append((name, self.open.pop(name), end))
            if "optimizer" in self.open:
                # An optimizer that was given a closure makes the other phases within its own.
                self.open["optimizer"] = end
        return end

    # The end of a step.

    def _end_step(self):
        if not self.described:
            self._describe()
        loss = self.told_loss
        if loss is None and self.losses:
            loss = self.clock.copy(self.joined(self.losses))
        end = self._close("optimizer") or self.clock.mark()
        step, begin, parts, profiled, own_s = self.step, self.began or end, self.parts, self.profiler is not None, self.own_s
        self.clock.later(lambda: self._tell_step(step, begin, end, parts, loss, profiled, 1e3 * own_s), end)
        # Where the marks of phases take more than their share of a step, most steps go without.
        if self.timed:
            self.every = min(16, 1 + int(own_s / (OWN_SHARE * (end[0] - begin[0]) + 1e-9)))
        self.step, self.began, self.own_s = step + 1, end, 0.0
        self.timed = self.step % self.every == 0
        self.parts, self.open, self.losses, self.told_loss, self.batches = [], {}, [], None, 0
        if profiled:
            self._try_profile(self._stop_profile, step, 1e3 * (end[0] - begin[0]))
        elif self.rank == 0 and _now() > self.next_profile:
            self._try_profile(self._start_profile)
        self.clock.poll()

    def _tell_step(self, step, begin, end, parts, loss, profiled, own_ms):
        phases = {}
        for name, since, until in parts:
            phases[name] = phases.get(name, 0.0) + _ms(since, until)
        ms = _ms(begin, end) - phases.pop("evaluation", 0.0)
        self.lines.add(
            "step", step=step, ms=round(max(ms, 0.0), 4), profiled=profiled or None, own_ms=round(own_ms, 4),
            loss=None if loss is None else _number(float(loss)),
            phases={name: round(ms, 4) for name, ms in phases.items() if name in PHASES} or None,
        )

    def _trained(self):
        """The parameters of the optimizer that require a gradient and of which this process has a part."""
        every = (p for group in self.optimizer.param_groups for p in group["params"])
        return [p for p in every if p.requires_grad and _local(p).numel() > 0]

    def _describe(self):
        self.described, torch, trained = True, self.torch, self._trained()
        done = self.optimizer.state.get(trained[0], {}).get("step") if trained else None
        if self.step == 0 and done is not None and (not torch.is_tensor(done) or done.device.type == "cpu"):
            # This step's update is in the count already.
            self.step = max(0, int(done) - 1)
        named = torch.cuda.get_device_name(self.device) if self.clock.cuda else f"{torch.get_num_threads()} threads of a CPU"
        samples = self.samples or (self.batch and self.batch * max(self.batches, 1))
        frozen = sum(p.numel() for p in self.model.parameters() if not p.requires_grad)
        self.lines.add(
            "run", name=self.name, rank=self.rank, ranks=self.ranks, classes=self.classes, samples=samples,
            device={"kind": "gpu" if self.clock.cuda else self.device.type, "name": named}, from_step=self.step,
            parameters=sum(p.numel() for p in trained), tensors=len(trained), frozen=frozen or None,
        )

    # Gradients and memory.

    def _look(self):
        self.looks, self.looked = self.looks + 1, _now()
        torch, trained, step = self.torch, self._trained(), self.step
        have = [p for p in trained if p.grad is not None and not p.grad.is_sparse]
        grads = [_local(p.grad) for p in have]
        host = None
        if grads:
            zeros = torch.stack([(grad == 0).sum() for grad in grads]).float()
            norms = torch.stack([norm.float() for norm in torch._foreach_norm(grads)])
            # A fused optimizer divides by the scale itself.
            scale = getattr(self.optimizer, "grad_scale", None)
            norms = norms if scale is None else norms / scale
            host = self.clock.copy(torch.stack([norms, zeros.to(norms.device)]))
        self.clock.later(lambda: self._tell_gradients(step, trained, have, host))
        state = [t for s in self.optimizer.state.values() for t in s.values() if torch.is_tensor(t) and t.dim()]
        bytes_of = {"weights": self.model.parameters(), "gradients": grads, "moments": state}
        bytes_of = {key: sum(_local(t).numel() * t.element_size() for t in tensors) for key, tensors in bytes_of.items()}
        if self.clock.cuda:
            bytes_of["peak_bytes"] = torch.cuda.max_memory_allocated(self.device)
            bytes_of["current_bytes"] = torch.cuda.memory_allocated(self.device)
        else:
            bytes_of["reason"] = "PyTorch does not count its memory on a CPU"
        self.lines.add("memory", **bytes_of)

    def _tell_gradients(self, step, trained, have, host):
        norms, zeros = host.tolist() if host is not None else ([], [])
        told = {id(p): (norm, zero) for p, norm, zero in zip(have, norms, zeros)}
        # A part that is used now and then (an expert) or later (the first factor of LoRA) counts once it was reached.
        self.reached.update(key for key, (norm, _) in told.items() if math.isfinite(norm) and norm > 0)
        if self.looks < FIRST_LOOKS:
            return
        rows = [{"name": self.names.get(id(p), "?"), "parameters": p.numel()} for p in trained]
        for p, row in zip(trained, rows):
            if id(p) in told:
                norm, zero = told[id(p)]
                row.update(norm=_number(norm), zero_pct=100.0 * zero / _local(p).numel())
        reached = [p for p in trained if id(p) in self.reached]
        self.lines.add(
            "gradients", step=step, tensors=len(trained), with_grad=len(reached), norm=_number(math.hypot(*norms)),
            params_pct=100.0 * sum(p.numel() for p in reached) / max(1, sum(p.numel() for p in trained)),
            rows=sorted(rows, key=lambda row: "norm" in row)[:200], loss_scale=self.scale, skipped=self.skipped or None,
        )

    # Profiles, of the first process only: the others would wait for each.

    def _profile(self):
        kinds = self.torch.profiler.ProfilerActivity
        return self.torch.profiler.profile(activities=[kinds.CPU] + ([kinds.CUDA] if self.clock.cuda else []))

    def _prepare_profile(self):
        """The profiler takes hold of the driver once, which must be before a graph is captured. Where CUDA allows it, the profiler lets go
        after each profile, because a profiler that holds the driver slows down every launch (docs/watch.md has figures)."""
        if self.clock.cuda and self.rank == 0:
            if tuple(map(int, (self.torch.version.cuda or "0.0").split(".")[:2])) >= (12, 6):
                os.environ.setdefault("TEARDOWN_CUPTI", "1")
            with self._profile():
                pass

    def _start_profile(self):
        self.began_profile, self.profiler = _now(), self._profile().__enter__()
        self.range = self.torch.profiler.record_function(f"ProfilerStep#{self.step}").__enter__()

    def _stop_profile(self, step, ms):
        profiler, self.profiler = self.profiler, None
        self.range.__exit__(None, None, None)
        if self.clock.cuda:
            self.torch.cuda.synchronize(self.device)
        profiler.__exit__(None, None, None)
        file = f"rank-{self.rank}-step-{step}.json"
        profiler.export_chrome_trace(os.path.join(self.folder, file))
        self.lines.add("profile", step=step, ms=ms, file=file)
        self.next_profile = _now() + max(PROFILE_EVERY_S, (_now() - self.began_profile) / PROFILE_SHARE)

    def _try_profile(self, part, *arguments):
        """Another tool may hold the profiler: then there are no profiles, and everything else goes on."""
        try:
            part(*arguments)
        except Exception as error:  # noqa: BLE001
            self.profiler, self.next_profile = None, math.inf
            _warn(f"no step is profiled: {error}")
        # The time of a profile belongs to no step.
        self.began = self.clock.mark() if self.described else None


def _local(tensor):
    """What this process has of a tensor that may be spread over several."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _scalar(torch, out):
    """The loss among what a model returned: its `loss`, or the one number that has a gradient."""
    loss = out.get("loss") if hasattr(out, "get") else getattr(out, "loss", None)
    parts = [loss, *(out if isinstance(out, (tuple, list)) else [out])]
    found = [p for p in parts if torch.is_tensor(p) and p.numel() == 1 and p.requires_grad]
    return found[0] if found else None


class _ForTrainer:
    """For Hugging Face's Trainer: `Trainer(…, callbacks=[perflings.TrainerCallback(classes=vocabulary)])`."""

    def __init__(self, classes=None):
        self.classes, self.run = classes, None

    def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
        if self.run is None and optimizer is not None:
            batches = args.gradient_accumulation_steps
            # As the Trainer does it: a model that takes more arguments divides by the tokens of all accumulated batches.
            taken = inspect.signature(model.forward).parameters.values()
            divides = any(it.kind == inspect.Parameter.VAR_KEYWORD for it in taken)
            options = {"classes": self.classes, "step": state.global_step, "samples": args.per_device_train_batch_size * batches}
            options["joined"] = lambda losses: sum(losses) / (1 if divides else len(losses))
            self.run = watch(model, getattr(optimizer, "optimizer", optimizer), **options)

    def on_train_end(self, args, state, control, **_):
        if self.run is not None:
            self.run.close()


class _ForLightning:
    """For Lightning: `Trainer(…, callbacks=[perflings.LightningCallback(classes=vocabulary)])`."""

    def __init__(self, classes=None):
        self.classes, self.run = classes, None

    def on_train_start(self, trainer, pl_module):
        samples = getattr(trainer.train_dataloader, "batch_size", None)
        options = {"classes": self.classes, "step": trainer.global_step, "samples": samples, "hooks": False}
        self.run = watch(pl_module, trainer.optimizers[0], **options)

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if isinstance(self.run, _Run):
            self.run._do(self.run._forward)

    def on_before_backward(self, trainer, pl_module, loss):
        if isinstance(self.run, _Run):
            self.run._do(self.run._forwarded, loss)

    def on_train_end(self, trainer, pl_module):
        self.run.close()


def __getattr__(name):
    """The callbacks need a class of their framework: they are made when they are asked for."""
    if name == "TrainerCallback":
        from transformers import TrainerCallback

        return type(name, (_ForTrainer, TrainerCallback), {})
    if name == "LightningCallback":
        from lightning.pytorch.callbacks import Callback

        return type(name, (_ForLightning, Callback), {})
    raise AttributeError(name)
