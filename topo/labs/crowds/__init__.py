"""NEWS (flash-crowd control) in the lab: the flash crowds of Chen & Heidemann on the network of their testbed (Figure
17), measured at clients and servers.

`python -m topo.labs.crowds` (make news) runs scenarios and variants and writes results/news/.
"""
