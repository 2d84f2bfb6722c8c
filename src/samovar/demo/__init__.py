"""The demo: a fraud-detection workflow with a bug in it, payments to run it on, and a look at what came out.

`payments` generates the data, `fraud` is the workflow, `findings` lists what is odd in a result, `export` writes
all of it to files that people can edit. Nothing here imports pyspark.
"""
