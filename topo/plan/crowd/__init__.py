"""Flash crowds: the network of Chen & Heidemann's testbed (Figure 17), its loads, and its measures."""
