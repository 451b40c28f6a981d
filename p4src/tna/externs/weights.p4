// Computes logarithms of weights, for the comparison of servers' loads per weight.
#ifndef SLUICE_TNA_WEIGHTS_P4
#define SLUICE_TNA_WEIGHTS_P4

// Computes 32 times the binary logarithm of a weight, plus a summand, from the weight's highest four bits. A weight of 0 yields
// only the summand.
control WeightLogarithm(in weight_t weight, in bit<16> summand, out bit<16> logarithm) {
    @hidden
    action is(bit<16> value) {
        logarithm = summand + value;
    }

    @hidden
    table logarithms {
        key = { weight : ternary @name("weight"); }
        actions = { is; }
        const entries = {
            16w0x0000 &&& 16w0xffff : is(0);
            16w0x0001 &&& 16w0xffff : is(0);
            16w0x0002 &&& 16w0xffff : is(32);
            16w0x0003 &&& 16w0xffff : is(51);
            16w0x0004 &&& 16w0xffff : is(64);
            16w0x0005 &&& 16w0xffff : is(74);
            16w0x0006 &&& 16w0xffff : is(83);
            16w0x0007 &&& 16w0xffff : is(90);
            16w0x0008 &&& 16w0xffff : is(96);
            16w0x0009 &&& 16w0xffff : is(101);
            16w0x000a &&& 16w0xffff : is(106);
            16w0x000b &&& 16w0xffff : is(111);
            16w0x000c &&& 16w0xffff : is(115);
            16w0x000d &&& 16w0xffff : is(118);
            16w0x000e &&& 16w0xffff : is(122);
            16w0x000f &&& 16w0xffff : is(125);
            16w0x0010 &&& 16w0xfffe : is(129);
            16w0x0012 &&& 16w0xfffe : is(135);
            16w0x0014 &&& 16w0xfffe : is(139);
            16w0x0016 &&& 16w0xfffe : is(144);
            16w0x0018 &&& 16w0xfffe : is(148);
            16w0x001a &&& 16w0xfffe : is(151);
            16w0x001c &&& 16w0xfffe : is(155);
            16w0x001e &&& 16w0xfffe : is(158);
            16w0x0020 &&& 16w0xfffc : is(162);
            16w0x0024 &&& 16w0xfffc : is(167);
            16w0x0028 &&& 16w0xfffc : is(172);
            16w0x002c &&& 16w0xfffc : is(176);
            16w0x0030 &&& 16w0xfffc : is(180);
            16w0x0034 &&& 16w0xfffc : is(184);
            16w0x0038 &&& 16w0xfffc : is(187);
            16w0x003c &&& 16w0xfffc : is(190);
            16w0x0040 &&& 16w0xfff8 : is(194);
            16w0x0048 &&& 16w0xfff8 : is(200);
            16w0x0050 &&& 16w0xfff8 : is(204);
            16w0x0058 &&& 16w0xfff8 : is(208);
            16w0x0060 &&& 16w0xfff8 : is(212);
            16w0x0068 &&& 16w0xfff8 : is(216);
            16w0x0070 &&& 16w0xfff8 : is(219);
            16w0x0078 &&& 16w0xfff8 : is(222);
            16w0x0080 &&& 16w0xfff0 : is(227);
            16w0x0090 &&& 16w0xfff0 : is(232);
            16w0x00a0 &&& 16w0xfff0 : is(236);
            16w0x00b0 &&& 16w0xfff0 : is(241);
            16w0x00c0 &&& 16w0xfff0 : is(244);
            16w0x00d0 &&& 16w0xfff0 : is(248);
            16w0x00e0 &&& 16w0xfff0 : is(251);
            16w0x00f0 &&& 16w0xfff0 : is(254);
            16w0x0100 &&& 16w0xffe0 : is(259);
            16w0x0120 &&& 16w0xffe0 : is(264);
            16w0x0140 &&& 16w0xffe0 : is(268);
            16w0x0160 &&& 16w0xffe0 : is(273);
            16w0x0180 &&& 16w0xffe0 : is(277);
            16w0x01a0 &&& 16w0xffe0 : is(280);
            16w0x01c0 &&& 16w0xffe0 : is(283);
            16w0x01e0 &&& 16w0xffe0 : is(286);
            16w0x0200 &&& 16w0xffc0 : is(291);
            16w0x0240 &&& 16w0xffc0 : is(296);
            16w0x0280 &&& 16w0xffc0 : is(300);
            16w0x02c0 &&& 16w0xffc0 : is(305);
            16w0x0300 &&& 16w0xffc0 : is(309);
            16w0x0340 &&& 16w0xffc0 : is(312);
            16w0x0380 &&& 16w0xffc0 : is(315);
            16w0x03c0 &&& 16w0xffc0 : is(318);
            16w0x0400 &&& 16w0xff80 : is(323);
            16w0x0480 &&& 16w0xff80 : is(328);
            16w0x0500 &&& 16w0xff80 : is(332);
            16w0x0580 &&& 16w0xff80 : is(337);
            16w0x0600 &&& 16w0xff80 : is(341);
            16w0x0680 &&& 16w0xff80 : is(344);
            16w0x0700 &&& 16w0xff80 : is(347);
            16w0x0780 &&& 16w0xff80 : is(350);
            16w0x0800 &&& 16w0xff00 : is(355);
            16w0x0900 &&& 16w0xff00 : is(360);
            16w0x0a00 &&& 16w0xff00 : is(364);
            16w0x0b00 &&& 16w0xff00 : is(369);
            16w0x0c00 &&& 16w0xff00 : is(373);
            16w0x0d00 &&& 16w0xff00 : is(376);
            16w0x0e00 &&& 16w0xff00 : is(379);
            16w0x0f00 &&& 16w0xff00 : is(383);
            16w0x1000 &&& 16w0xfe00 : is(387);
            16w0x1200 &&& 16w0xfe00 : is(392);
            16w0x1400 &&& 16w0xfe00 : is(396);
            16w0x1600 &&& 16w0xfe00 : is(401);
            16w0x1800 &&& 16w0xfe00 : is(405);
            16w0x1a00 &&& 16w0xfe00 : is(408);
            16w0x1c00 &&& 16w0xfe00 : is(411);
            16w0x1e00 &&& 16w0xfe00 : is(415);
            16w0x2000 &&& 16w0xfc00 : is(419);
            16w0x2400 &&& 16w0xfc00 : is(424);
            16w0x2800 &&& 16w0xfc00 : is(428);
            16w0x2c00 &&& 16w0xfc00 : is(433);
            16w0x3000 &&& 16w0xfc00 : is(437);
            16w0x3400 &&& 16w0xfc00 : is(440);
            16w0x3800 &&& 16w0xfc00 : is(443);
            16w0x3c00 &&& 16w0xfc00 : is(447);
            16w0x4000 &&& 16w0xf800 : is(451);
            16w0x4800 &&& 16w0xf800 : is(456);
            16w0x5000 &&& 16w0xf800 : is(461);
            16w0x5800 &&& 16w0xf800 : is(465);
            16w0x6000 &&& 16w0xf800 : is(469);
            16w0x6800 &&& 16w0xf800 : is(472);
            16w0x7000 &&& 16w0xf800 : is(475);
            16w0x7800 &&& 16w0xf800 : is(479);
            16w0x8000 &&& 16w0xf000 : is(483);
            16w0x9000 &&& 16w0xf000 : is(488);
            16w0xa000 &&& 16w0xf000 : is(493);
            16w0xb000 &&& 16w0xf000 : is(497);
            16w0xc000 &&& 16w0xf000 : is(501);
            16w0xd000 &&& 16w0xf000 : is(504);
            16w0xe000 &&& 16w0xf000 : is(507);
            16w0xf000 &&& 16w0xf000 : is(511);
        }
        const default_action = is(0);
    }

    apply {
        logarithms.apply();
    }
}

#endif
