load plots . '/common.gp'
set title 'What the machine gives without the library (median; bars: quartiles)'
set logscale x
set xlabel 'nanoseconds'
set format x '10^{%L}'
set yrange [*:*] reverse
set ytics font ',10' noenhanced
set lmargin 42
set boxwidth 0.6
unset key
plot csv every ::1 using 12:0:13:14:ytic(strcol(2) . (strcol(8) eq '0' ? '' : sprintf(', %s B', strcol(8)))) with xerrorbars pt 7 ps 1 lw 2 lc rgb color(1)
