"""Flash crowds: Chen & Heidemann's network (Figure 17), its loads, and what is measured."""
