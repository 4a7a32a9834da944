"""iket, in-kernel event tracing for CUDA, from Python."""

__version__ = "0.1.0"
