"""`evertrain watch`: new data, drift, decay or a schedule start a run, once.

places      where events come from: the project's data, or a queue that its bucket notifies
looking     what is there now: the version of the data, and how much of it is new
cursor      what the watchers of a project know together, one object in the store
debounce    when what came has been quiet for long enough
starting    one run for one reason, whoever asks for it, and however often
starter     who runs it: this machine (local_starter, local_run) or Kubeflow (kubeflow_starter)
by_data, by_schedule, by_advice    what makes a run due (looks, schedules and advice do the work)
watcher     one turn: what is heard, found, due and under way
process     turns until somebody asks it to stop: back-off, signals
telling, exporting, serving    lines, metrics, and the port that they are asked for on
"""
