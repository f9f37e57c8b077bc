"""The Python nodes of the demo, one module and process each: `python -m nodes.controller` and so on, from
demo/.

They communicate with each other through rnet, and with run.py through pipes (process.py). messages.py defines
their messages.
"""
