"""History replayed as it arrived, through the real steps, under policies.

schedule.py     which dates, and what each is judged on
settings.py     the project as it is run at each date: data, store and registry of its own
arriving.py     the rows of each period as a file, and which of them had arrived by a date
replay.py       one run of the pipeline a date, resumable; notes.py: what is kept of each
scoring.py      the score of every row by every model that there was
judging.py      what the pipeline's own evaluation decided
policies.py     which model each policy would have served
result.py       figures; reckoning.py makes them of the scores; page.py draws them
"""
