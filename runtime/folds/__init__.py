"""Folds: what lowerings wrote as several layers and one layer computes; each is free and changes no result.

They work on the graph that lowerings lead to, whose every node is written by one rule. Those that are
patterns stand in ``schemas/hub/rewrites.yaml``; here is what a pattern cannot say.
"""
