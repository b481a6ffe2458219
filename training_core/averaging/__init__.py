"""Averages of the weights that training went through: exponential (EMA) and stochastic (SWA)."""
