#include "bench/run.h"

#include <math.h>

#define WIDTH      920
#define HEIGHT     400
#define PANEL_TOP  64.0
#define PANEL_HIGH 264.0
#define PANEL_WIDE 370.0
#define LEFT_X     70.0
#define RIGHT_X    525.0
#define RATE_SPAN  5U /* half a second smooths the sampling */

static const char *const colours[] = {"#2f6fde", "#d9622b", "#2e9e5b",
                                      "#9a4fc4", "#c79a1b", "#5b6b7b"};
#define COLOURS (sizeof colours / sizeof colours[0])

/* A panel with its two scales; log10 of the values where `log_y` says so. */
struct panel {
    double x;         /* of the left edge */
    double low, high; /* of the y axis, in its unit (or log10 of it) */
    double right;     /* of the x axis; the left end is 0 */
    bool log_y;
};

static double
at_x(const struct panel *p, double value)
{
    return p->x + PANEL_WIDE * value / p->right;
}

static double
at_y(const struct panel *p, double value)
{
    double v = p->log_y ? log10(value < 0.1 ? 0.1 : value) : value;
    double part = (v - p->low) / (p->high - p->low);

    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return PANEL_TOP + PANEL_HIGH * (1 - part);
}

static void
plot_begin(const struct options *o, FILE *out)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" "
            "font-family=\"system-ui, sans-serif\" font-size=\"12\">\n"
            "<style>\n"
            ".page{fill:#ffffff}.ink{fill:#1f2933}.soft{fill:#616e7c}\n"
            ".grid{stroke:#e4e7eb}.axis{stroke:#9aa5b1}\n"
            ".line{fill:none;stroke-width:2;stroke-linejoin:round}\n"
            "@media (prefers-color-scheme:dark){.page{fill:#11161c}.ink{fill:#e4e7eb}"
            ".soft{fill:#9aa5b1}.grid{stroke:#28323d}.axis{stroke:#52606d}}\n"
            "</style>\n"
            "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n"
            "<text class=\"ink\" x=\"%.0f\" y=\"26\" font-size=\"16\" "
            "font-weight=\"600\">",
            WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT_X);
    for (const char *c = report_label(o); *c != '\0'; c++) {
        if (*c == '<')
            fputs("&lt;", out);
        else if (*c == '&')
            fputs("&amp;", out);
        else
            fputc(*c, out);
    }
    fprintf(out, ": %s, batch %lld, %lld connections, %s</text>\n",
            scenarios[o->scenario].name, (long long)o->batch, (long long)o->connections,
            o->rate > 0 ? "open loop" : "closed loop");
}

static void
grid_y(const struct panel *p, double value, const char *label, FILE *out)
{
    double y = at_y(p, value);

    fprintf(out,
            "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
            "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
            p->x, p->x + PANEL_WIDE, y, y, p->x - 8, y + 4, label);
}

static void
grid_x(const struct panel *p, double value, const char *label, FILE *out)
{
    double x = at_x(p, value);

    fprintf(
        out,
        "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>"
        "<text class=\"soft\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
        x, x, PANEL_TOP, PANEL_TOP + PANEL_HIGH, x, PANEL_TOP + PANEL_HIGH + 18, label);
}

static void
panel_frame(const struct panel *p, const char *title, FILE *out)
{
    fprintf(out,
            "<text class=\"soft\" x=\"%.0f\" y=\"50\">%s</text>\n"
            "<path class=\"axis\" fill=\"none\" d=\"M%.1f %.1fV%.1fH%.1f\"/>\n",
            p->x, title, p->x, PANEL_TOP, PANEL_TOP + PANEL_HIGH, p->x + PANEL_WIDE);
}

static void
panel_legend(const struct panel *p, size_t place, const char *name, FILE *out)
{
    double x = p->x + (double)(place % 4) * 95;
    double y = PANEL_TOP + PANEL_HIGH + 42 + (double)(place / 4) * 16;

    fprintf(out,
            "<rect x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"4\" rx=\"2\" fill=\"%s\"/>"
            "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
            x, y - 6, colours[place % COLOURS], x + 20, y, name);
}

/* How far right a percentile stands: each step of 1 is ten times closer to 100. */
static double
nines(double percent)
{
    return -log10((100 - percent) / 100);
}

static void
latency_line(const struct panel *p, const struct histogram *h, const char *colour,
             FILE *out)
{
    double left = 100;
    const char *command = "M";

    fprintf(out, "<path class=\"line\" stroke=\"%s\" d=\"", colour);
    while (nines(100 - left) <= p->right && left * (double)h->total >= 100) {
        fprintf(out, "%s%.1f %.1f", command, at_x(p, nines(100 - left)),
                at_y(p, report_us(h, 100 - left)));
        command = "L";
        left *= 0.85;
    }
    fprintf(out, "\"/>\n");
}

static void
latency_panel(const struct op_stats *s, FILE *out)
{
    static const char *const names[] = {"0", "90 %", "99 %", "99.9 %", "99.99 %"};
    static const char *const powers[] = {"1 us",  "10 us",  "100 us", "1 ms",
                                         "10 ms", "100 ms", "1 s",    "10 s"};
    double low = 1e9, high = 1; /* that are shown */
    struct panel p = {.x = LEFT_X, .right = 4, .log_y = true};
    struct report_row rows[REPORT_ROWS];
    size_t count = report_rows(s, rows);

    for (size_t i = 0; i < count; i++) {
        low = fmin(low, report_us(rows[i].latency, 1));
        high = fmax(high, report_us(rows[i].latency, 100));
    }
    p.low = floor(log10(low < 1 ? 1 : low > high ? high : low));
    p.high = fmax(ceil(log10(high)), p.low + 1);
    for (int i = (int)p.low; i <= (int)p.high && i < 8; i++)
        grid_y(&p, pow(10, i), powers[i], out);
    for (int i = 0; i <= (int)p.right; i++)
        grid_x(&p, i, names[i], out);
    panel_frame(&p, "Latency by percentile", out);
    for (size_t i = 0; i < count; i++) {
        latency_line(&p, rows[i].latency, colours[i % COLOURS], out);
        panel_legend(&p, i, rows[i].name, out);
    }
}

/* A step of 1, 2 or 5 times a power of ten that cuts `high` into four to eight parts. */
static double
nice_step(double high)
{
    double step = pow(10, floor(log10(high / 4)));

    if (high / step > 20)
        return step * 5;
    return high / step > 8 ? step * 2 : step;
}

static void
rate_line(const struct panel *p, const struct series *s, bool messages, size_t place,
          FILE *out)
{
    fprintf(out, "<path class=\"line\" stroke=\"%s\" d=\"", colours[place]);
    for (size_t i = RATE_SPAN; i < s->count; i++)
        fprintf(out, "%s%.1f %.1f", i == RATE_SPAN ? "M" : "L",
                at_x(p, fmax(0, s->samples[i].at)),
                at_y(p, series_rate(s, i, RATE_SPAN, messages)));
    fprintf(out, "\"/>\n");
    panel_legend(p, place, messages ? "messages/s" : "requests/s", out);
}

static void
rate_panel(const struct result *r, FILE *out)
{
    struct panel p = {.x = RIGHT_X, .right = r->seconds > 0 ? r->seconds : 1, .high = 1};
    const struct series *s = &r->series;
    char text[32];

    for (size_t i = RATE_SPAN; i < s->count; i++)
        p.high = fmax(p.high, fmax(series_rate(s, i, RATE_SPAN, false),
                                   series_rate(s, i, RATE_SPAN, true)));
    p.high *= 1.08;
    for (double v = 0, step = nice_step(p.high); v <= p.high; v += step) {
        snprintf(text, sizeof text, v >= 1000 ? "%.4g k" : "%.4g",
                 v >= 1000 ? v / 1000 : v);
        grid_y(&p, v, text, out);
    }
    for (double v = 0, step = nice_step(p.right); v <= p.right; v += step) {
        snprintf(text, sizeof text, "%.3g s", v);
        grid_x(&p, v, text, out);
    }
    panel_frame(&p, "Throughput over time", out);
    rate_line(&p, s, false, 0, out);
    rate_line(&p, s, true, 1, out);
}

void
plot_svg(const struct options *o, const struct result *r, FILE *out)
{
    plot_begin(o, out);
    latency_panel(&r->stats->calm, out);
    rate_panel(r, out);
    fprintf(out, "</svg>\n");
}
