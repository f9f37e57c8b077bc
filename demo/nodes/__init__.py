"""The Python nodes of the demo, a module and a process each: `python -m nodes.controller` and so on, from demo/.

They talk to each other with rnet and to run.py with pipes (process.py). messages.py has what they say.
"""
