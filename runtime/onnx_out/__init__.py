"""Writing ONNX files of any opset from 7 on: the hub's ops become ops of the opset, and these a file.

A graph passes through these files in this order: ``target`` says to the legalizer how each op is said in
the opset, by the rules of ``generated/onnx`` or by name (``emit``), with the types that the opset allows
(``types``); ``model`` puts names and values together, ``writer`` streams the file, ``export`` does all of it
and verifies.
"""
