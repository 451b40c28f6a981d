"""NEWS in the lab: the flash crowds of paper 003, on its testbed's network (Figure 17), measured at its ends.

`python -m topo.news` (make news) runs scenarios and variants and writes results/news/.
"""
