"""What differs by the machine: schedules, the texts of kernels, steps of plans."""
