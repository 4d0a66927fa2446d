"""A GPU in jobs of a hub, used as programs use it: by nvidia-smi, and by CUDA's driver through ctypes.

Needs nothing but Python: `python3 tests/gpu_jobs.py` checks all of it on a machine with a GPU and says what it saw;
with `--python PROGRAM`, a Python that has torch and lies below /usr or /opt, that too."""

from __future__ import annotations

import argparse
import ctypes
import inspect
import json
import re
from pathlib import Path

from hub_host import Hub
from hub_jobs import ENDED, Jobs, Refused, Sandbox

GPUS = Path("/proc/driver/nvidia/gpus")
NODES = ("nvidiactl", "nvidia-uvm")


def gpus() -> int:
    return len(list(GPUS.glob("*"))) if GPUS.is_dir() else 0


def use_cuda() -> None:
    """Runs inside a job: 64 MiB to the GPU and back, by the driver's own library."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments) -> None:
        status = getattr(cuda, name)(*arguments)
        if status != 0:
            raise SystemExit(f"{name}: CUDA error {status}")

    call("cuInit", 0)
    count, device, context, memory = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuDeviceGetCount", ctypes.byref(count))
    call("cuDeviceGet", ctypes.byref(device), 0)
    name = ctypes.create_string_buffer(256)
    call("cuDeviceGetName", name, 256, device)
    call("cuCtxCreate_v2", ctypes.byref(context), 0, device)
    sent = bytes(range(256)) * (1 << 18)
    back = ctypes.create_string_buffer(len(sent))
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(len(sent)))
    call("cuMemcpyHtoD_v2", memory, sent, ctypes.c_size_t(len(sent)))
    call("cuMemcpyDtoH_v2", back, memory, ctypes.c_size_t(len(sent)))
    call("cuMemFree_v2", memory)
    print(json.dumps({"count": count.value, "name": name.value.decode(), "same": back.raw == sent}), flush=True)


USE_TORCH = """import torch
a = torch.arange(1024 * 1024, device="cuda", dtype=torch.float32).reshape(1024, 1024)
print("torch", torch.cuda.device_count(), torch.allclose((a @ torch.eye(1024, device="cuda")).cpu(), a.cpu()), flush=True)
"""


def cuda_program() -> list[str]:
    return ["python3", "-c", f"import ctypes, json\n{inspect.getsource(use_cuda)}\nuse_cuda()"]


def output(jobs: Jobs, command: list[str], flavor: str, **fields) -> list[str]:
    """The lines of a job that must succeed."""
    job = jobs.start(command, flavor=flavor, **fields)
    status = jobs.until(job, *ENDED, timeout=180)["status"]
    lines = jobs.log(job)
    assert status["stage"] == "COMPLETED", (status, lines)
    return lines


def nodes(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if line.startswith("nvidia"))


def check_nvidia_smi(jobs: Jobs) -> list[str]:
    lines = output(jobs, ["nvidia-smi", "-L"], "gpu")
    assert len([line for line in lines if line.startswith("GPU ")]) == 1, lines
    return lines


def check_cuda(jobs: Jobs) -> dict:
    said = json.loads(output(jobs, cuda_program(), "gpu")[-1])
    assert said["count"] == 1 and said["same"] and said["name"], said
    return said


def check_nodes(jobs: Jobs) -> list[str]:
    """One GPU, what all of them need, and nothing that could be made of it."""
    script = "ls /dev; mknod /root/x c 195 1 2>/dev/null && echo nvidia-made; true"
    found = nodes(output(jobs, ["/bin/sh", "-c", script], "gpu"))
    own = [name for name in found if re.fullmatch(r"nvidia\d+", name)]
    assert len(own) == 1 and set(found) - {"nvidia-uvm-tools", *own} == set(NODES), found
    return found


def check_without(jobs: Jobs) -> None:
    """A job of another flavor has no node, makes none, and CUDA finds nothing."""
    script = "ls /dev; for n in nvidia0 nvidiactl; do mknod /root/$n c 195 0 2>/dev/null && echo nvidia-made; done; true"
    assert nodes(output(jobs, ["/bin/sh", "-c", script], "cpu-basic")) == []
    job = jobs.start(cuda_program())
    info = jobs.until(job, *ENDED, timeout=60)
    assert info["status"]["stage"] == "ERROR", (info["status"], jobs.log(job))


def check_sandbox(jobs: Jobs) -> str:
    """The same in a dedicated sandbox."""
    sandbox = Sandbox(jobs, flavor="gpu").ready()
    try:
        said = sandbox.run("nvidia-smi -L; ls /dev")
        assert said.count("GPU ") == 1 and "nvidiactl" in said, said
        return said.splitlines()[0]
    finally:
        jobs.cancel(sandbox.id)
        jobs.until(sandbox.id, *ENDED)


def check_torch(jobs: Jobs, python: str) -> list[str]:
    lines = output(jobs, [python, "-c", USE_TORCH], "gpu", environment={"OMP_NUM_THREADS": "1"})
    assert lines[-1] == "torch 1 True", lines
    return lines


def refusal(jobs: Jobs) -> str:
    """Why a GPU cannot be had."""
    try:
        jobs.start(["true"], flavor="gpu")
    except Refused as refused:
        return str(refused)
    raise AssertionError("a GPU that is not there was promised")


def main() -> None:
    flags = argparse.ArgumentParser()
    flags.add_argument("--python")
    python = flags.parse_args().python
    hub = Hub()
    try:
        jobs = Jobs(hub.start())
        if gpus() == 0:
            print("no GPU here:", refusal(jobs))
        else:
            print("nvidia-smi:", *check_nvidia_smi(jobs))
            print("nodes:", *check_nodes(jobs))
            print("CUDA:", check_cuda(jobs))
            print("sandbox:", check_sandbox(jobs))
            check_without(jobs)
            print("another flavor: none of it")
            if python:
                print("torch:", *check_torch(jobs, python))
        hub.stop()
    finally:
        hub.destroy()


if __name__ == "__main__":
    main()
