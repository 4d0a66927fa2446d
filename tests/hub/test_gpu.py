"""GPUs of the machine in jobs of a hub. How they are shared out and what stands around them is proved with fake ones by
engine_test (LocalGpus, ServedJobs) and sandbox_test (DevicesTest); here is what only a real one can show."""

import os

import gpu_jobs
import pytest
from hub_jobs import Jobs

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("gpu"),
              pytest.mark.skipif(os.geteuid() != 0, reason="only root can raise all walls")]
real = pytest.mark.skipif(gpu_jobs.gpus() == 0, reason="this machine has no NVIDIA GPU (/proc/driver/nvidia/gpus)")


@pytest.fixture(scope="module")
def jobs(hub):
    return Jobs(hub)


@pytest.mark.skipif(gpu_jobs.gpus() > 0, reason="this machine has a GPU")
def test_without_a_gpu_the_flavor_is_refused_and_told_why(jobs):
    assert "this machine has no GPU" in gpu_jobs.refusal(jobs)
    gpu_jobs.check_without(jobs)


@real
def test_nvidia_smi_sees_one_gpu(jobs):
    gpu_jobs.check_nvidia_smi(jobs)


@real
def test_cuda_computes(jobs):
    gpu_jobs.check_cuda(jobs)


@real
def test_only_the_nodes_of_its_gpu_are_there(jobs):
    gpu_jobs.check_nodes(jobs)


@real
def test_a_sandbox_has_it_too(jobs):
    gpu_jobs.check_sandbox(jobs)


@real
def test_a_job_of_another_flavor_has_none(jobs):
    gpu_jobs.check_without(jobs)
