"""The texts of hand-written kernels, by the kind of their schedule."""

from __future__ import annotations

from .convolution_schedule import ConvolutionSchedule, ConvolutionSumSchedule
from .convolution_text import convolution_sum_text, convolution_text
from .scatter_schedule import ScatterSchedule
from .scatter_text import scatter_text
from .template import TemplateSchedule


def template_text(schedule: TemplateSchedule, name: str, first_check: int) -> str:
    """The text of `extern "C" __global__ void name(...)`, to stand behind the device library.

    `first_check` is the number of its first check among those of the whole module.
    """
    match schedule:
        case ConvolutionSchedule():
            return convolution_text(schedule, name)
        case ConvolutionSumSchedule():
            return convolution_sum_text(schedule, name)
        case ScatterSchedule():
            return scatter_text(schedule, name, first_check)
    raise NotImplementedError(f"no text for {schedule}")
