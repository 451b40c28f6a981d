"""NEWS in the lab: the flash crowds of Chen & Heidemann, on their testbed's network (Figure 17), measured at its ends.

`python -m topo.labs.crowds` (make news) runs scenarios and variants and writes results/news/.
"""
