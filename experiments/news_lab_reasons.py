"""Why figures of the lab's flash crowds are not those of paper 003, as far as it is known."""

ALARM_EARLY = (
    "The crowd begins at 0.4 of an interval here and has filled the link some 20 s later, so that the end of this very "
    "interval shows it. The paper's 1,088 s are the end of an interval of 64 s, too, the second one after its onset at "
    "1,000 s: the first came 24 s after the onset of a crowd that took minutes to rise."
)
LIMIT_LOW = (
    "The limit as published starts from what was admitted in the interval of the alarm. Here that interval is partly "
    "quiet and lies in the crowd's rise, so that the limit starts low, and then it only moves up and down around its "
    "start ([crowds](reference/crowds.md)); the paper's alarm came later in its crowd. What is rejected "
    "follows from the limit."
)
SYN_ACKS_PASS = (
    "Without control nearly every request is connected here, most at their first SYN: the queue in front of the full "
    "link is bounded in bytes, and a SYN-ACK finds room in it where an answer's frame does not. In the paper a fifth "
    "of the connections fail and repeat their SYNs. Why as many do there is not known."
)
SYNS_OFTEN = (
    "A refused SYN comes again after 1, 2, 3, 4, 5 and 7 s of this clock (times k in the paper's scale) until its "
    "client's patience ends; the paper's kernel waited 3 s and doubled that."
)
FULL_LINK = (
    "How fast the fastest tenth of the answers is on a full link depends on round trips, sizes, the queue and timers. "
    "The paper gives none of them; which of them it is is not known."
)
LOSS_FULL = (
    "What a full link drops depends on how often it is sent again. Here clients lose patience (section 7.6.1), and "
    "their answers end with them; whether those of the paper's testbed did is not said, and its kernel's timers were "
    "others. Which of the two it is is not known."
)
TOO_MUCH = (
    "0.55 of this crowd is more than this link carries, while 0.57 of the paper's just fitted its link: rates, sizes "
    "and link are not the paper's."
)
OTHER_LINK = "The link is that of the paper's testbed, which lost 60 % itself; that of its simulation is not given."
SECOND_LIMIT = (
    "This slow server carries some nine tenths of what the link does and is short of CPU; the paper's "
    "swapped, and served four fifths of its crowd, slowly, with the link at 60 %."
)
MEMORY_HELD = (
    "An answer holds memory from its beginning to its end here, and a server that is offered less than it carries has "
    "few of them at a time."
)
BULK_STANDS = (
    "At this loss a Reno transfer gets on by timeouts only. How the paper's kept a quarter of its rate at a loss of "
    "60 % is not known."
)
BULK_LIMITED = (
    "The transfer is limited by its application, as that of section 8.6 is, and the admitted crowd leaves it the room; "
    "that of Fig. 16 takes what it gets beside the crowd."
)
LATENCY_OF_THE_ANSWERED = (
    "A latency is that of an answer that came whole: who lost patience is not in it. Most requests connect at their "
    "first SYN here, whereas 9.5 s are about what two lost SYNs cost the paper's kernel (3 and 6 s)."
)
LATENCY_OF_THE_ADMITTED = (
    "NEWS without identification refuses SYNs of the bystander, too (22 % of its connections in the paper, more here, "
    "for the limit is lower). The median is of the answers that came: more than half of those were let in at their "
    "first SYN, and many others never were."
)
LATENCY_OF_THE_REFUSED = (
    "A bystander's SYN that NEWS without identification refuses comes again after a second of this clock (k s in the "
    "paper's scale): those that were let in later make the mean. Without control hardly a SYN is lost here."
)
NO_BURSTS = (
    "The load before the crowd is a Poisson process here and a log in the paper, whose alarm on the testbed came 240 s "
    "before its crowd. Whether that is why has not been tried."
)
WHERE_IN_T = (
    "The crowd begins at 0.4 of an interval whatever T is. Whether the alarm comes at that interval's end or at the "
    "next one's, and how much of the interval was quiet, decides how high the limit starts; where more is let in than "
    "the link carries (some 50/s), AR stays low. T as such is the lesser part of it."
)
READ_AS_OFTEN = "The controller reads the switch every 2 s whatever T is. What else decides its CPU is not known."
MEMORY_IN_THE_SWITCH = (
    "The state of flows is in the switch's registers, whose size is fixed; the controller's memory is Python's and its "
    "libraries'."
)
