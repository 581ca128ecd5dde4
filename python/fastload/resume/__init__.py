"""The position of an iterator, and its continuation by another: `Loader.state_dict` and `Loader.load_state_dict`.

`saving` writes a state and `loading` compares one with a loader; `facts` is what both look at. A `Cursor` is where an iterator
is, `Draws` what its order was drawn from, `Pulls` what it asks of the sampler, and `Resumable` the iterator of each lane.
"""
