"""Small models of other exporters: by hand where those are gone, else written by the exporters themselves.

``files`` holds what each exporter wrote of a model of ours, with an input and what the framework computed
of it. The scripts beside it made them, each in an environment that has the exporter:
``python -m tests.onnx_front.exporters.tensorflow``.
"""
