"""Accuracy first, speed second, each candidate in a child process: the kernels of one machine.

cases   what a candidate must do: inputs at real lengths, reference, tolerances, clock
child   the process that runs candidates one after another and says what came of each
parent  starts children, and turns a crash or a silence into a verdict
table   the whole probe of a machine, its verdicts kept and printed
"""
