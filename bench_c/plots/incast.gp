load plots . '/common.gp'
policies = 'acquire limit distributed'
# "POLICY; N to 1<rest>" of one mode, as lines "N median q1 q3".
policy_rows(policy, rest) = sprintf("< awk -F, -v p='%s' -v r='%s' '$3 == \"auto\" { n = split($2, part, \"; \"); rest = \"\"; for (i = 3; i <= n; i++) rest = rest \"; \" part[i]; if (part[1] == p && rest == r) { split(part[2], senders, \" \"); print senders[1], $12, $13, $14 } }' '%s'", policy, rest, csv)
set datafile separator whitespace
set logscale x 2
set xlabel 'senders'
set format x '%g'
set xrange [0.8:80]
set yrange [0:*]
set bmargin 6
set multiplot layout 2,2
titles = '"million messages a second, all together" "slowest sender / mean" "changes of the hottest counter per message"'
rests = '"" "; slowest / mean" "; hottest counter"'
do for [k=1:3] {
    set title word(titles, k) font ',11'
    plot for [i=1:3] policy_rows(word(policies, i), word(rests, k)) using 1:2:3:4 with yerrorlines lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(policies, i)
}
set title 'MiB of slots at the receiver' font ',11'
set logscale y
set yrange [*:*]
plot for [i=1:3] policy_rows(word(policies, i), "; memory of slots") using 1:($2/1024) with linespoints lw 1.5 pt 7 ps 0.5 lc rgb color(i) title word(policies, i), \
     policy_rows('buffer per peer', "; memory of slots") using 1:($2/1024) with linespoints lw 2 dt 2 lc rgb '#555555' title 'per peer (computed)'
unset multiplot
