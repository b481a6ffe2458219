"""`evertrain deploy`: a project's pipeline and schedules in Kubeflow, made as the file says.

checks      what would fail in the cluster, found before anything goes there
package     the compiled pipeline, and the name that its content gives it
marks       how our own things in Kubeflow are told from others'
state       what is there now
plan        what has to be done, worked out without touching anything
apply       doing it, so that a crash between any two requests leaves what the next deploy mends
deploying   all of these, one after another
follow      starting a run, following it, and how it ended
"""
