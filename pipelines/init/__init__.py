"""`evertrain init`: a project proposed from a sample of the data.

start        the whole command: read, decide, write
sample       some objects of the source, some rows of them
columns      what each column of the sample looks like
naming       what a column's name tells
label        which value of the label is the positive one
times        when a row came to be
keys         which columns name a row
knowledge    what a column alone knows of the label
features     which columns the network reads, and why not the others
splitting    how rows are divided
sizes        batch, passes, baselines: what follows from the number of rows
suite        the Great Expectations suite
proposal     all that was decided
asking       what a person is asked, and when nobody is there
writing      the files of the project: which there are, and what they say
rendering    how files are written from templates; `pipelines.new` does so too
"""
