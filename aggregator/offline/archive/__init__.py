"""What are the groups of copies in a whole archive? Where the service answers one article, this answers millions.

``pipeline.py`` is the story; ``job.py`` says what a run can be asked; ``finish.py`` writes its files.
"""
