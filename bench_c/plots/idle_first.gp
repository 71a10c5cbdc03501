load plots . '/common.gp'
set title 'An 8-byte write after 50 ms of rest, and the ones right behind it'
cases = '"write mapped; spin" "write registered; spin" "write mapped deferred; llcl_wait_word"'
labels = "\"mapped\nspin\" \"registered\nspin\" \"deferred\nllcl wait word\""
set logscale y
set yrange [1:*]
set ylabel 'nanoseconds'
set format y '%g'
set xrange [0.4:6.6]
set xtics () font ',11'
set for [k=1:3] xtics add ("first\n" . word(labels, k) 2 * k - 1, "next\n" . word(labels, k) 2 * k)
set key maxrows 1
set bmargin 7
set boxwidth 0.24
set style fill solid 0.8
plot for [i=1:3] for [k=1:3] rows('first: ' . word(cases, k), word(modes, i)) using (2 * k - 1 + (i - 2) * 0.27):12 with boxes lc rgb color(i) title (k == 1 ? word(modes, i) : ''), \
     for [i=1:3] for [k=1:3] rows('next: ' . word(cases, k), word(modes, i)) using (2 * k + (i - 2) * 0.27):12 with boxes lc rgb color(i) notitle, \
     for [i=1:3] for [k=1:3] rows('first: ' . word(cases, k), word(modes, i)) using (2 * k - 1 + (i - 2) * 0.27):17 with points pt 2 ps 1.5 lw 2 lc rgb '#333333' title (k == 1 && i == 1 ? 'limit: a futex wake (registered: a cold process\_vm)' : '')
