load plots . '/common.gp'
set title 'First request after 50 ms of rest, and the next ones (8 B write)'
cases = '"write mapped; spin" "write registered; spin" "write mapped deferred; llcl_wait_word"'
set logscale y
set ylabel 'nanoseconds'
set format x '%g'
set format y '%g'
set xrange [0.4:6.6]
set xtics font ',10'
do for [k=1:3] {
    set xtics add (sprintf("first:\n%s", word(cases, k)) 2 * k - 1, sprintf("next:\n%s", word(cases, k)) 2 * k)
}
set xtics noenhanced rotate by -20
set boxwidth 0.24
set style fill solid 0.8
set key inside top right maxcols 1
plot for [i=1:3] for [k=1:3] rows('first: ' . word(cases, k), word(modes, i)) using (2 * k - 1 + (i - 2) * 0.27):12 with boxes lc rgb color(i) title (k == 1 ? word(modes, i) : ''), \
     for [i=1:3] for [k=1:3] rows('next: ' . word(cases, k), word(modes, i)) using (2 * k + (i - 2) * 0.27):12 with boxes lc rgb color(i) notitle, \
     for [k=1:3] rows('first: ' . word(cases, k), 'auto') using (2 * k - 1):17 with points pt 2 ps 2 lw 2 lc rgb '#333333' title (k == 1 ? 'futex wake after the same rest' : '')
