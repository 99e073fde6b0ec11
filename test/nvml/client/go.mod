// A module of its own: only this test needs the binding, and the scheduler's dependencies stay as they are.
module github.com/frond-scheduler/frond/test/nvml/client

go 1.26.0

require github.com/NVIDIA/go-nvml v0.13.3-0
