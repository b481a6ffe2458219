"""`evertrain new`: a whole project of a kind, with data that it makes itself.

start        the whole command: write the files, make the data
template     which templates there are
templates/   a folder a kind; `tabular` has only its data, and `pipelines.init` proposes the rest
"""
