// Compares two servers' loads per weight. The hardware does not multiply, so the comparison subtracts logarithms.
#ifndef SLUICE_TNA_LIGHTER_P4
#define SLUICE_TNA_LIGHTER_P4

#include "weights.p4"

// Computes 32 times the binary logarithm of `number` + 1, plus a summand, from the number's highest four bits, for numbers below
// 2^17. A larger number yields the largest value, a negative number only the summand. (The table itself adds the summand, because
// a separate addition would cost a stage.)
control Logarithm(in bit<32> number, in bit<16> summand, out bit<16> logarithm) {
    @hidden
    action is(bit<16> value) {
        logarithm = summand + value;
    }

    @hidden
    table logarithms {
        key = { number : ternary @name("number"); }
        actions = { is; }
        const entries = {
            32w0x80000000 &&& 32w0x80000000 : is(0);    // a negative number
            32w0x00000 &&& 32w0xffffffff : is(0);
            32w0x00001 &&& 32w0xffffffff : is(32);
            32w0x00002 &&& 32w0xffffffff : is(51);
            32w0x00003 &&& 32w0xffffffff : is(64);
            32w0x00004 &&& 32w0xffffffff : is(74);
            32w0x00005 &&& 32w0xffffffff : is(83);
            32w0x00006 &&& 32w0xffffffff : is(90);
            32w0x00007 &&& 32w0xffffffff : is(96);
            32w0x00008 &&& 32w0xffffffff : is(101);
            32w0x00009 &&& 32w0xffffffff : is(106);
            32w0x0000a &&& 32w0xffffffff : is(111);
            32w0x0000b &&& 32w0xffffffff : is(115);
            32w0x0000c &&& 32w0xffffffff : is(118);
            32w0x0000d &&& 32w0xffffffff : is(122);
            32w0x0000e &&& 32w0xffffffff : is(125);
            32w0x0000f &&& 32w0xffffffff : is(128);
            32w0x00010 &&& 32w0xfffffffe : is(132);
            32w0x00012 &&& 32w0xfffffffe : is(137);
            32w0x00014 &&& 32w0xfffffffe : is(142);
            32w0x00016 &&& 32w0xfffffffe : is(146);
            32w0x00018 &&& 32w0xfffffffe : is(150);
            32w0x0001a &&& 32w0xfffffffe : is(153);
            32w0x0001c &&& 32w0xfffffffe : is(156);
            32w0x0001e &&& 32w0xfffffffe : is(159);
            32w0x00020 &&& 32w0xfffffffc : is(163);
            32w0x00024 &&& 32w0xfffffffc : is(169);
            32w0x00028 &&& 32w0xfffffffc : is(173);
            32w0x0002c &&& 32w0xfffffffc : is(177);
            32w0x00030 &&& 32w0xfffffffc : is(181);
            32w0x00034 &&& 32w0xfffffffc : is(185);
            32w0x00038 &&& 32w0xfffffffc : is(188);
            32w0x0003c &&& 32w0xfffffffc : is(191);
            32w0x00040 &&& 32w0xfffffff8 : is(195);
            32w0x00048 &&& 32w0xfffffff8 : is(200);
            32w0x00050 &&& 32w0xfffffff8 : is(205);
            32w0x00058 &&& 32w0xfffffff8 : is(209);
            32w0x00060 &&& 32w0xfffffff8 : is(213);
            32w0x00068 &&& 32w0xfffffff8 : is(216);
            32w0x00070 &&& 32w0xfffffff8 : is(220);
            32w0x00078 &&& 32w0xfffffff8 : is(223);
            32w0x00080 &&& 32w0xfffffff0 : is(227);
            32w0x00090 &&& 32w0xfffffff0 : is(232);
            32w0x000a0 &&& 32w0xfffffff0 : is(237);
            32w0x000b0 &&& 32w0xfffffff0 : is(241);
            32w0x000c0 &&& 32w0xfffffff0 : is(245);
            32w0x000d0 &&& 32w0xfffffff0 : is(248);
            32w0x000e0 &&& 32w0xfffffff0 : is(252);
            32w0x000f0 &&& 32w0xfffffff0 : is(255);
            32w0x00100 &&& 32w0xffffffe0 : is(259);
            32w0x00120 &&& 32w0xffffffe0 : is(264);
            32w0x00140 &&& 32w0xffffffe0 : is(269);
            32w0x00160 &&& 32w0xffffffe0 : is(273);
            32w0x00180 &&& 32w0xffffffe0 : is(277);
            32w0x001a0 &&& 32w0xffffffe0 : is(280);
            32w0x001c0 &&& 32w0xffffffe0 : is(283);
            32w0x001e0 &&& 32w0xffffffe0 : is(287);
            32w0x00200 &&& 32w0xffffffc0 : is(291);
            32w0x00240 &&& 32w0xffffffc0 : is(296);
            32w0x00280 &&& 32w0xffffffc0 : is(301);
            32w0x002c0 &&& 32w0xffffffc0 : is(305);
            32w0x00300 &&& 32w0xffffffc0 : is(309);
            32w0x00340 &&& 32w0xffffffc0 : is(312);
            32w0x00380 &&& 32w0xffffffc0 : is(315);
            32w0x003c0 &&& 32w0xffffffc0 : is(319);
            32w0x00400 &&& 32w0xffffff80 : is(323);
            32w0x00480 &&& 32w0xffffff80 : is(328);
            32w0x00500 &&& 32w0xffffff80 : is(333);
            32w0x00580 &&& 32w0xffffff80 : is(337);
            32w0x00600 &&& 32w0xffffff80 : is(341);
            32w0x00680 &&& 32w0xffffff80 : is(344);
            32w0x00700 &&& 32w0xffffff80 : is(347);
            32w0x00780 &&& 32w0xffffff80 : is(351);
            32w0x00800 &&& 32w0xffffff00 : is(355);
            32w0x00900 &&& 32w0xffffff00 : is(360);
            32w0x00a00 &&& 32w0xffffff00 : is(365);
            32w0x00b00 &&& 32w0xffffff00 : is(369);
            32w0x00c00 &&& 32w0xffffff00 : is(373);
            32w0x00d00 &&& 32w0xffffff00 : is(376);
            32w0x00e00 &&& 32w0xffffff00 : is(379);
            32w0x00f00 &&& 32w0xffffff00 : is(383);
            32w0x01000 &&& 32w0xfffffe00 : is(387);
            32w0x01200 &&& 32w0xfffffe00 : is(392);
            32w0x01400 &&& 32w0xfffffe00 : is(397);
            32w0x01600 &&& 32w0xfffffe00 : is(401);
            32w0x01800 &&& 32w0xfffffe00 : is(405);
            32w0x01a00 &&& 32w0xfffffe00 : is(408);
            32w0x01c00 &&& 32w0xfffffe00 : is(411);
            32w0x01e00 &&& 32w0xfffffe00 : is(415);
            32w0x02000 &&& 32w0xfffffc00 : is(419);
            32w0x02400 &&& 32w0xfffffc00 : is(424);
            32w0x02800 &&& 32w0xfffffc00 : is(429);
            32w0x02c00 &&& 32w0xfffffc00 : is(433);
            32w0x03000 &&& 32w0xfffffc00 : is(437);
            32w0x03400 &&& 32w0xfffffc00 : is(440);
            32w0x03800 &&& 32w0xfffffc00 : is(443);
            32w0x03c00 &&& 32w0xfffffc00 : is(447);
            32w0x04000 &&& 32w0xfffff800 : is(451);
            32w0x04800 &&& 32w0xfffff800 : is(456);
            32w0x05000 &&& 32w0xfffff800 : is(461);
            32w0x05800 &&& 32w0xfffff800 : is(465);
            32w0x06000 &&& 32w0xfffff800 : is(469);
            32w0x06800 &&& 32w0xfffff800 : is(472);
            32w0x07000 &&& 32w0xfffff800 : is(475);
            32w0x07800 &&& 32w0xfffff800 : is(479);
            32w0x08000 &&& 32w0xfffff000 : is(483);
            32w0x09000 &&& 32w0xfffff000 : is(488);
            32w0x0a000 &&& 32w0xfffff000 : is(493);
            32w0x0b000 &&& 32w0xfffff000 : is(497);
            32w0x0c000 &&& 32w0xfffff000 : is(501);
            32w0x0d000 &&& 32w0xfffff000 : is(504);
            32w0x0e000 &&& 32w0xfffff000 : is(507);
            32w0x0f000 &&& 32w0xfffff000 : is(511);
            32w0x10000 &&& 32w0xffffe000 : is(515);
            32w0x12000 &&& 32w0xffffe000 : is(520);
            32w0x14000 &&& 32w0xffffe000 : is(525);
            32w0x16000 &&& 32w0xffffe000 : is(529);
            32w0x18000 &&& 32w0xffffe000 : is(533);
            32w0x1a000 &&& 32w0xffffe000 : is(536);
            32w0x1c000 &&& 32w0xffffe000 : is(539);
            32w0x1e000 &&& 32w0xffffe000 : is(543);
        }
        const default_action = is(544);
    }

    apply {
        logarithms.apply();
    }
}

// Prefers the second server drawn to the first if its load per weight would be clearly lower, where each load is increased by the
// new connection. The two must differ by about an eighth (5 / 32 in binary logarithms), because the rounding of weights (86, 85,
// 85) must not decide between equal servers. A load is negative while the number of stale connections is outdated, and then
// counts as 0. If the second server refuses connections, the first is preferred.
control Lighter(inout metadata_t meta) {
    Logarithm() of_load;
    WeightLogarithm() of_weight;
    Logarithm() of_other_load;
    WeightLogarithm() of_other_weight;

    bit<16> weighed;
    bit<16> other_weighed;
    bit<16> work;
    bit<16> other_work;

    @hidden
    action weigh() {
        weighed = weighed - other_weighed;
    }

    @hidden
    action compare() {
        other_work = other_work - work;
    }

    @hidden
    action prefer_other() {
        meta.preferred = meta.loads.other;
    }

    @hidden
    action prefer_choice() {
        meta.preferred = meta.choice;
    }

    @hidden
    action neither() {
        meta.preferred = 0;
    }

    @hidden
    table prefer {
        key = {
            meta.loads.read_only     : ternary @name("look");
            meta.loads.other_refuses : ternary @name("other_refuses");
            other_work               : ternary @name("other_work");
        }
        actions = { prefer_other; prefer_choice; neither; }
        const entries = {
            (1, 0, 0x8000 &&& 0x8000) : prefer_other();
            (1, _, _)                 : prefer_choice();
        }
        const default_action = neither();
    }

    apply {
        of_weight.apply(meta.choice_weight, 5, weighed);
        of_other_weight.apply(meta.other_weight, 0, other_weighed);
        weigh();
        of_load.apply(meta.loads.load, 0, work);
        of_other_load.apply(meta.loads.other_load, weighed, other_work);
        compare();
        prefer.apply();
    }
}

#endif
