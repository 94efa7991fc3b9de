"""Shows a PyTorch training in the panels of `perflings watch` while it runs.

    import perflings
    run = perflings.watch(model, optimizer, data=loader, classes=vocabulary)
    for batch in run.data: ...

`watch` does nothing unless PERFLINGS_WATCH names a folder, as `perflings watch -- python train.py` sees to. It never stops the training:
what goes wrong here is told once on stderr, and the training goes on without being watched. It never waits for the device, except in a
step that it profiles, at most one a minute.

Only the process that calls `watch` writes. Times of phases are the host's; on a GPU they are read from events of the device, a little
later. The lines that are written are described in docs/watch.md.
"""

import atexit
import json
import math
import os
import queue
import socket
import sys
import threading
import time
from contextlib import contextmanager

PROTOCOL = 1
VERSION = "0.1.0"
GRADIENTS_EVERY_S = 10.0
PROFILE_EVERY_S = 60.0
#: A profile may cost this share of the time until the next one.
PROFILE_SHARE = 0.01
ROWS = 200
ROW_OF_PHASE = ("data", "forward", "backward", "communication", "optimizer")

_now = time.perf_counter


class _Lines:
    """Writes lines on a thread of its own, so that a slow disk delays no step. Without lines it says what the process does."""

    def __init__(self, path, phase):
        self.began, self.phase = _now(), phase
        self.file = open(path, "a", encoding="utf-8")
        self.waiting = queue.SimpleQueue()
        self.dropped = False
        self.thread = threading.Thread(target=self._write, name="perflings", daemon=True)
        self.thread.start()

    def add(self, event, **parts):
        if not self.dropped:
            line = {"t": round(_now() - self.began, 6), "event": event}
            line.update((key, part) for key, part in parts.items() if part is not None)
            self.waiting.put(line)

    def _write(self):
        try:
            while True:
                try:
                    line = self.waiting.get(timeout=2.0)
                except queue.Empty:
                    line = {"event": "alive", "phase": self.phase()}
                if line is None:
                    break
                self.file.write(json.dumps(line, separators=(",", ":")) + "\n")
                if self.waiting.empty():
                    self.file.flush()
                    time.sleep(0.05)
            self.file.flush()
        except (OSError, ValueError) as error:
            self.dropped = True
            _warn(f"no more lines are written: {error}")

    def close(self):
        self.waiting.put(None)
        self.thread.join(2.0)


def _warn(text):
    print(f"perflings: {text}", file=sys.stderr)


def _number(value):
    """JSON has no NaN and no infinity; the reader takes them as text."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("inf" if value > 0 else "-inf")


class _Late:
    """Values of the device that are read once they have arrived, so that nothing waits for them."""

    def __init__(self, torch, device):
        self.torch, self.cuda = torch, device.type == "cuda"
        self.pending = []

    def mark(self):
        """This moment on the host and, on a GPU, in the device's stream."""
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

    def then(self, read, mark=None):
        self.pending.append((mark or self.mark(), read))

    def poll(self, all_of_them=False):
        while self.pending:
            (_, event), read = self.pending[0]
            if event is not None and not event.query():
                if not all_of_them:
                    return
                event.synchronize()
            self.pending.pop(0)
            read()


def _between(begin, end):
    """Milliseconds between two marks, on the device's clock where both have one."""
    if begin[1] is not None and end[1] is not None:
        return begin[1].elapsed_time(end[1])
    return 1e3 * (end[0] - begin[0])


class _Unwatched:
    """What `watch` returns where nothing is watched: it gives everything back as it came."""

    def __init__(self, data=None):
        self.data = data

    def loss(self, loss):
        return loss

    @contextmanager
    def phase(self, _name):
        yield

    def close(self, _why=None):
        pass


def _guarded(method):
    """A fault of ours ends the watching and never the training."""

    def call(self, *arguments, **named):
        if self.off or os.getpid() != self.pid:
            return None
        try:
            return method(self, *arguments, **named)
        except Exception as error:  # noqa: BLE001
            self.off = True
            _warn(f"the training is not watched any more: {type(error).__name__}: {error}")
            return None

    return call


class _Data:
    """The loader, with the time that the training waits for its batches. Everything else of it is as before."""

    def __init__(self, run, loader):
        self._run, self._loader = run, loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def __len__(self):
        return len(self._loader)

    def __iter__(self):
        batches = iter(self._loader)
        while True:
            began = _now()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._run._waited(began, _now())
            yield batch


class _Run:
    def __init__(self, torch, model, optimizer, data, classes, name, step, folder):
        self.torch, self.model, self.optimizer = torch, model, optimizer
        self.pid, self.off, self.data = os.getpid(), False, data
        self.rank = _rank(torch)
        self.classes, self.folder = classes, folder
        self.name = name or os.path.basename(sys.argv[0]) or "training"
        self.parameters = {id(p): (n, p) for n, p in model.named_parameters()}
        self.device = next((p.device for _, p in self.parameters.values()), torch.device("cpu"))
        self.lines = _Lines(os.path.join(folder, f"rank-{self.rank}.jsonl"), self._phase)
        self.late = _Late(torch, self.device)
        self.step = step
        self.described = False
        self.phases = dict.fromkeys(ROW_OF_PHASE, None)
        self.open_marks, self.parts = {}, []
        self.latest_loss, self.asked_loss, self.scale = None, False, None
        self.ended = self.late.mark()
        self.evaluating = False
        self.samples = getattr(data, "batch_size", None)
        self.micro = 0
        self.looked = -math.inf
        self.profiler, self.next_profile, self.skipped = None, _now() + 10.0, 0
        self.lines.add(
            "hello", protocol=PROTOCOL, version=VERSION, pid=self.pid, host=socket.gethostname(),
            os=sys.platform, cores=os.cpu_count() or 1, date=time.strftime("%Y-%m-%d", time.gmtime()),
        )
        if data is not None:
            self.data = _Data(self, data)
        self._hook()
        self._prepare_profiler()
        atexit.register(self.close)
        before = sys.excepthook

        def failed(kind, error, trace):
            self.close(f"{kind.__name__}: {error}"[:300])
            before(kind, error, trace)

        sys.excepthook = failed

    # What the training calls.

    def loss(self, loss):
        """Tells the loss of this step, where it is not what the model returns or what `backward` is called on."""
        self._tell_loss(loss)
        return loss

    @contextmanager
    def phase(self, name):
        """Times a part of the step by hand: data, forward, backward, communication or optimizer."""
        if name not in ROW_OF_PHASE:
            _warn(f"there is no phase {name!r}; there are {', '.join(ROW_OF_PHASE)}")
        self._begin(name)
        try:
            yield
        finally:
            self._end(name)

    def close(self, why=None):
        if self.off or os.getpid() != self.pid:
            return
        self.off = True
        try:
            self.late.poll(all_of_them=True)
            self.lines.add("ended", slot="a", step=self.step, why=why)
            self.lines.close()
        except Exception:  # noqa: BLE001
            pass

    # Hooks.

    def _hook(self):
        torch = self.torch
        self.model.register_forward_pre_hook(lambda *_: self._forward())
        self.model.register_forward_hook(lambda _m, _i, out: self._forwarded(out))
        self.optimizer.register_step_pre_hook(lambda *_: self._stepping())
        self.optimizer.register_step_post_hook(lambda *_: self._stepped())
        backward = torch.Tensor.backward
        run = self

        def watched(tensor, *arguments, **named):
            run._backward(tensor)
            result = backward(tensor, *arguments, **named)
            run._end("backward")
            return result

        torch.Tensor.backward = watched
        scaler = torch.amp.GradScaler
        scale, update = scaler.scale, scaler.update

        def scaling(this, outputs):
            if torch.is_tensor(outputs):
                run._tell_loss(outputs, asked=False)
            return scale(this, outputs)

        def updating(this, *arguments, **named):
            run._updated(this)
            return update(this, *arguments, **named)

        scaler.scale, scaler.update = scaling, updating

    def _phase(self):
        return next(reversed(list(self.open_marks)), "evaluation" if self.evaluating else None)

    def _training(self):
        return self.model.training and self.torch.is_grad_enabled()

    @_guarded
    def _forward(self):
        if not self._training():
            self.evaluating = True
            return
        if self.evaluating:
            # The time of an evaluation belongs to no step.
            self.evaluating = False
            self.ended = self.late.mark()
        self.micro += 1
        self._mark("forward")

    @_guarded
    def _forwarded(self, out):
        if self.evaluating or "forward" not in self.open_marks:
            self.ended = self.late.mark()
            return
        self._close("forward")
        loss = _scalar(self.torch, out)
        if loss is not None:
            self._take_loss(loss)

    @_guarded
    def _backward(self, tensor):
        if tensor.dim() == 0 and self.latest_loss is None:
            self._take_loss(tensor)
        self._mark("backward")

    @_guarded
    def _tell_loss(self, loss, asked=True):
        if asked or self.latest_loss is None:
            self._take_loss(loss)
        self.asked_loss = self.asked_loss or asked

    def _take_loss(self, loss):
        if not self.asked_loss and loss.numel() == 1:
            self.latest_loss = loss.detach()

    @_guarded
    def _stepping(self):
        if self.profiler is None and _now() - self.looked > GRADIENTS_EVERY_S:
            self._look_at_gradients()
        self._mark("optimizer")

    @_guarded
    def _stepped(self):
        self._close("optimizer")
        self._end_step()

    @_guarded
    def _updated(self, scaler):
        # A scaler that found a gradient that is not finite leaves the optimizer's step out.
        if self.micro > 0:
            self.skipped += 1
            self._end_step()
        scale = getattr(scaler, "_scale", None)
        if scale is not None:
            host = self.late.copy(scale)
            self.late.then(lambda: setattr(self, "scale", float(host)))

    @_guarded
    def _waited(self, began, ended):
        if self.evaluating:
            return
        self.parts.append(("data", (began, None), (ended, None)))

    @_guarded
    def _begin(self, name):
        self._mark(name)

    @_guarded
    def _end(self, name):
        self._close(name)

    def _mark(self, name):
        self.open_marks[name] = self.late.mark()

    def _close(self, name):
        begin = self.open_marks.pop(name, None)
        if begin is not None:
            self.parts.append((name, begin, self.late.mark()))

    # A step is over.

    def _end_step(self):
        if not self.described:
            self._describe()
        step, begin, end, parts = self.step, self.ended, self.late.mark(), self.parts
        loss = None if self.latest_loss is None else self.late.copy(self.latest_loss)
        profiled = self.profiler is not None
        self.late.then(lambda: self._tell_step(step, begin, end, parts, loss, profiled))
        self.step += 1
        self.parts, self.latest_loss, self.asked_loss, self.micro = [], None, False, 0
        self.open_marks.clear()
        self.ended = end
        if profiled:
            self._stop_profile(step, 1e3 * (end[0] - begin[0]))
        elif _now() > self.next_profile:
            self._start_profile()
        self.late.poll()

    def _tell_step(self, step, begin, end, parts, loss, profiled):
        phases = {}
        for name, since, until in parts:
            phases[name] = phases.get(name, 0.0) + _between(since, until)
        self.lines.add(
            "step", step=step, ms=_between(begin, end), profiled=profiled or None,
            synced=True, loss=None if loss is None else _number(float(loss)),
            phases={name: round(ms, 4) for name, ms in phases.items()},
        )

    def _describe(self):
        torch = self.torch
        self.described = True
        trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        done = [s.get("step") for p in trained[:1] if (s := self.optimizer.state.get(p))]
        if self.step == 0 and done and (not torch.is_tensor(done[0]) or done[0].device.type == "cpu"):
            # This step's update is in the count already.
            self.step = max(0, int(done[0]) - 1)
        require = [p for p in trained if p.requires_grad]
        frozen = sum(p.numel() for _, p in self.parameters.values() if not p.requires_grad)
        kind = self.device.type
        named = torch.cuda.get_device_name(self.device) if kind == "cuda" else _processor(torch)
        samples = None if self.samples is None else self.samples * max(self.micro, 1)
        self.lines.add(
            "run", name=self.name, rank=self.rank, ranks=_ranks(torch), classes=self.classes,
            device={"kind": "gpu" if kind == "cuda" else kind, "name": named},
            parameters=sum(p.numel() for p in require), tensors=len(require), frozen=frozen or None,
            samples=samples, from_step=self.step,
        )

    def _look_at_gradients(self):
        torch, self.looked = self.torch, _now()
        trained = [p for group in self.optimizer.param_groups for p in group["params"] if p.requires_grad]
        have = [p for p in trained if p.grad is not None and not p.grad.is_sparse]
        norms = [p.grad.to_local() if hasattr(p.grad, "to_local") else p.grad for p in have]
        norms = torch._foreach_norm(norms) if norms else []
        host = self.late.copy(torch.stack([n.float() for n in norms])) if norms else None
        step = self.step
        self.late.then(lambda: self._tell_gradients(step, trained, have, host))
        self._tell_memory(trained, have)

    def _tell_gradients(self, step, trained, have, host):
        norms = dict(zip(map(id, have), host.tolist() if host is not None else []))
        scale = self.scale or 1.0
        rows, reached = [], 0
        for p in trained:
            norm = norms.get(id(p))
            norm = None if norm is None else norm / scale
            reached += p.numel() if norm is not None and math.isfinite(norm) and norm > 0 else 0
            name = self.parameters.get(id(p), ("?",))[0]
            rows.append({"name": name, "parameters": p.numel(), "norm": None if norm is None else _number(norm)})
        told = [n / scale for n in norms.values()]
        self.lines.add(
            "gradients", slot="a", step=step, tensors=len(trained),
            with_grad=sum(1 for n in told if math.isfinite(n) and n > 0),
            params_pct=100.0 * reached / max(1, sum(p.numel() for p in trained)),
            norm=_number(math.sqrt(sum(n * n for n in told)) if all(map(math.isfinite, told)) else math.nan),
            rows=rows[:ROWS], loss_scale=self.scale, skipped=self.skipped or None,
        )

    def _tell_memory(self, trained, have):
        bytes_of = lambda tensors: sum(t.numel() * t.element_size() for t in tensors)  # noqa: E731
        state = [t for s in self.optimizer.state.values() for t in s.values() if self.torch.is_tensor(t) and t.dim()]
        cuda = self.late.cuda
        self.lines.add(
            "memory", slot="a", weights=bytes_of(p for _, p in self.parameters.values()),
            gradients=bytes_of(p.grad for p in have), moments=bytes_of(state),
            peak_bytes=self.torch.cuda.max_memory_allocated(self.device) if cuda else None,
            current_bytes=self.torch.cuda.memory_allocated(self.device) if cuda else None,
            reason=None if cuda else "PyTorch does not count its memory on a CPU",
        )

    # Profiles.

    def _prepare_profiler(self):
        # The profiler takes hold of the driver once, which must be before a graph is captured.
        try:
            with self._profile():
                pass
        except Exception as error:  # noqa: BLE001
            self.next_profile = math.inf
            _warn(f"no step is profiled: {error}")

    def _profile(self):
        kinds = self.torch.profiler.ProfilerActivity
        wanted = [kinds.CPU] + ([kinds.CUDA] if self.late.cuda else [])
        return self.torch.profiler.profile(activities=wanted)

    def _start_profile(self):
        try:
            self.profiler = self._profile()
            self.began_profile = _now()
            self.profiler.__enter__()
            self.ended = self.late.mark()
        except Exception as error:  # noqa: BLE001
            self._give_up_profiles(error)

    def _stop_profile(self, step, ms):
        profiler, self.profiler = self.profiler, None
        try:
            if self.late.cuda:
                self.torch.cuda.synchronize(self.device)
            profiler.__exit__(None, None, None)
            file = f"rank-{self.rank}-step-{step}.json"
            profiler.export_chrome_trace(os.path.join(self.folder, file))
            self.lines.add("profile", slot="a", step=step, ms=ms, file=file)
            cost = _now() - self.began_profile
            self.next_profile = _now() + max(PROFILE_EVERY_S, cost / PROFILE_SHARE)
        except Exception as error:  # noqa: BLE001
            self._give_up_profiles(error)
        self.ended = self.late.mark()

    def _give_up_profiles(self, error):
        self.profiler, self.next_profile = None, math.inf
        _warn(f"no step is profiled any more: {error}")


def _scalar(torch, out):
    """The loss among what a model returned: its `loss`, or the one number that has a gradient."""
    loss = out.get("loss") if hasattr(out, "get") else getattr(out, "loss", None)
    if torch.is_tensor(loss):
        return loss
    parts = out if isinstance(out, (tuple, list)) else [out]
    found = [p for p in parts if torch.is_tensor(p) and p.numel() == 1 and p.requires_grad]
    return found[0] if found else None


def _rank(torch):
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    return int(os.environ.get("RANK", 0))


def _ranks(torch):
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_world_size()
    return int(os.environ.get("WORLD_SIZE", 1))


def _processor(torch):
    return f"{torch.get_num_threads()} threads of a CPU"


def watch(model, optimizer, data=None, classes=None, name=None, step=0):
    """Watches a training, if PERFLINGS_WATCH names a folder.

    `data` is the loader that the training loop iterates; iterate `run.data` in its place. `classes` is the number of classes or tokens
    that the loss chooses from; with it the first loss can be judged. `step` is where a training goes on that was begun before; where
    the optimizer's state tells it, it need not be given.
    """
    folder = os.environ.get("PERFLINGS_WATCH")
    if not folder:
        return _Unwatched(data)
    try:
        import torch

        return _Run(torch, model, optimizer, data, classes, name, step, folder)
    except Exception as error:  # noqa: BLE001
        _warn(f"the training is not watched: {type(error).__name__}: {error}")
        return _Unwatched(data)


def __getattr__(name):
    """`TrainerCallback` for Hugging Face's Trainer, `LightningCallback` for Lightning, made when they are asked for."""
    if name == "TrainerCallback":
        from transformers import TrainerCallback as Base

        class TrainerCallback(Base):
            def __init__(self, classes=None):
                self.classes, self.run = classes, None

            def on_train_begin(self, args, state, control, model=None, optimizer=None, **_):
                if self.run is None and optimizer is not None:
                    optimizer = getattr(optimizer, "optimizer", optimizer)
                    self.run = watch(model, optimizer, classes=self.classes, step=state.global_step)

            def on_train_end(self, args, state, control, **_):
                if self.run is not None:
                    self.run.close()

        return TrainerCallback
    if name == "LightningCallback":
        from lightning.pytorch.callbacks import Callback

        class LightningCallback(Callback):
            def __init__(self, classes=None):
                self.classes, self.run = classes, None

            def on_train_start(self, trainer, pl_module):
                optimizer = trainer.optimizers[0]
                self.run = watch(pl_module, optimizer, classes=self.classes, step=trainer.global_step)

            def on_train_end(self, trainer, pl_module):
                self.run.close()

        return LightningCallback
    raise AttributeError(name)
