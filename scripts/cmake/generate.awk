# Fills a frame with the tables of options and commands: pages of the manual, docs/options.md, completions
# of shells, and a configuration file.
#
#   awk [-v set="NAME=VALUE..."] -f generate.awk TABLES FRAME
#
# TABLES is the output of `claimd tables` (src/main/help.c, src/base/command.c), `claimd-client tables` and
# `claimd-bench tables`. A line of FRAME that begins with "@" names a part, such as "@options", and
# perhaps a command, such as "@about token". The part replaces the line. "@version@" within a line becomes
# a text. All other lines are copied. `set` has values of options for the part @conf.

BEGIN {
    FS = "\t"
    escapes["-"] = "\\-"
    escapes["\\"] = "\\e"
    escapes["'"] = "\\(aq"
    count = split(set, settings, " ")
    for (i = 1; i <= count; i++)
        values[substr(settings[i], 1, index(settings[i], "=") - 1)] = \
            substr(settings[i], index(settings[i], "=") + 1)
}

# ------------------------------------------------------------------ tables

NR == FNR {
    for (i = 2; i <= NF; i++)
        gsub(/\\n/, "\n", $i)
    if ($1 == "version") {
        texts["version"] = $2
    } else if ($1 == "role") {
        texts["roles"] = texts["roles"] (texts["roles"] == "" ? "" : " ") $2
    } else if ($1 == "option") {
        add_option()
    } else if ($1 == "command") {
        n = ++commands
        command[n] = $2
        about[n] = $3
        example[n] = $4
        actions[n] = $5
        takes_options[n] = $6 == "yes"
        is_client[n] = $6 == "client" # has the options of the list "connection", too
        texts["commands"] = texts["commands"] (n == 1 ? "" : " ") $2
    } else { # an entry of the list $1: name, text, placeholder of a value
        n = ++entries[$1]
        entry[$1, n] = $2
        entry_text[$1, n] = $3
        entry_value[$1, n] = $4
        if ($4 != "" && ($1 == "connection" || is_client[commands] && $1 == "option " command[commands]))
            texts[$4 == "FILE" ? "file_options" : "other_options"] = \
                texts[$4 == "FILE" ? "file_options" : "other_options"] " | " $2
    }
    next
}

function add_option(    n, spelled) {
    n = ++options
    group[n] = $2
    option[n] = $3
    value[n] = $4
    words[n] = $5
    default_of[n] = $6
    range[n] = $7
    sample[n] = $8
    reloadable[n] = $9 != ""
    help[n] = $10
    durable[n] = $11 # the default with a journal or a store on Redis, if it differs
    is_switch[n] = words[n] == "false|true"
    is_file[n] = value[n] == "FILE" || value[n] == "DIR"
    spelled = option[n]
    gsub(/_/, "-", spelled)
    argument[n] = "--" spelled
    gsub(/\|/, " ", words[n])
    texts["all_options"] = texts["all_options"] " " argument[n]
    if (is_file[n])
        texts["file_options"] = texts["file_options"] " | " argument[n]
    else if (words[n] == "")
        texts["other_options"] = texts["other_options"] " | " argument[n]
    known[option[n]] = 1
}

# ------------------------------------------------------------------ the frame

FNR == 1 {
    for (name in values)
        if (!(name in known))
            fail(name " is not an option")
}

/^@/ {
    split(substr($0, 2), part, " ")
    write_part(part[1], part[2])
    next
}

{
    while (match($0, /@[a-z_]+@/)) {
        name = substr($0, RSTART + 1, RLENGTH - 2)
        if (!(name in texts))
            fail("there is no text @" name "@")
        $0 = substr($0, 1, RSTART - 1) texts[name] substr($0, RSTART + RLENGTH)
    }
    print
}

function fail(why) {
    print FILENAME ":" FNR ": " why > "/dev/stderr"
    failed = 1
    exit 1
}

function write_part(name, of,    i, found) {
    found = of == "" # only the parts of a command have one
    if (name == "options")
        write_options(0)
    else if (name == "settings")
        write_options(1)
    else if (name == "bash_values")
        write_bash_values()
    else if (name == "bash_commands")
        write_bash_commands()
    else if (name == "zsh_options")
        write_zsh_options()
    else if (name == "zsh_commands")
        write_zsh_commands()
    else if (name == "markdown")
        write_markdown()
    else if (name == "conf")
        write_conf()
    else if (name == "profile")
        for (i = 1; i <= entries[name]; i++)
            write_head("", entry[name, i], " = ", entry_text[name, i], "")
    else if (name == "connection")
        write_option_entries(name)
    else if (name in entries)
        write_entries(name)
    else {
        found = 0
        for (i = 1; i <= commands; i++)
            if (of == "" || of == command[i])
                found += write_command_part(name, i)
    }
    if (!found)
        fail("there is nothing to put here")
}

# ------------------------------------------------------------------ manual

function escaped(text,    i, c, out) {
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        out = out (c in escapes ? escapes[c] : c)
    }
    return out
}

# The text for a page. Backquotes make bold. An empty line begins a paragraph.
function roff(text,    i, count, pieces, out) {
    count = split(text, pieces, "`")
    for (i = 1; i <= count; i++)
        out = out (i == 1 ? "" : i % 2 == 0 ? "\\fB" : "\\fP") escaped(pieces[i])
    gsub(/\n\n/, "\n.PP\n", out)
    return (text ~ /^\./ ? "\\&" : "") out # not a request of roff
}

# The head of an entry: `before` and name in bold, and the value in italics.
function write_head(before, name, between, value, behind) {
    print ".TP\n\\fB" roff(before) roff(name) "\\fP" roff(between) "\\fI" roff(value) "\\fP" roff(behind)
}

function write_entries(list,    i, text) {
    for (i = 1; i <= entries[list]; i++) {
        text = entry_text[list, i]
        print ".TP\n\\fB" roff(entry[list, i]) "\\fP\n" roff(text) (text ~ /\.$/ ? "" : ".")
    }
}

function write_option_entries(list,    i) {
    for (i = 1; i <= entries[list]; i++) {
        write_head("", entry[list, i], entry_value[list, i] == "" ? "" : " ", entry_value[list, i], "")
        print roff(entry_text[list, i])
    }
}

# Words in capitals are placeholders, in italics. Brackets and dots around them are neither bold nor italic.
function write_usage(usage,    i, count, words, from, till, out) {
    out = ".HP\n\\fBclaimd\\fP"
    count = split(usage, words, " ")
    for (i = 1; i <= count; i++) {
        from = words[i] ~ /^\[/ ? 2 : 1
        till = length(words[i])
        while (till >= from && substr(words[i], till, 1) ~ /[].]/)
            till--
        out = out " " substr(words[i], 1, from - 1) \
            (substr(words[i], from, 1) ~ /[A-Z]/ ? "\\fI" : "\\fB") \
            escaped(substr(words[i], from, till - from + 1)) "\\fP" substr(words[i], till + 1)
    }
    print out
}

# The options as they are on the command line, or as in a file.
function write_options(in_file,    i) {
    for (i = 1; i <= options; i++) {
        if (group[i] != group[i - 1])
            print ".SS " roff(group[i])
        if (in_file)
            write_head("", option[i], " = ", value[i], "")
        else
            write_head("", argument[i], is_switch[i] ? "[=" : " ", value[i], is_switch[i] ? "]" : "")
        print roff(help[i]) "\nDefault: " roff(default_of[i]) roff(durable[i] == "" ? "" : ", with a journal or Redis " durable[i]) (range[i] == "" ? "" : ", " range[i]) "."
        if (sample[i] != "")
            print "Example: " roff(sample[i]) "."
        if (reloadable[i])
            print "SIGHUP changes it."
    }
}

# Returns 1, or 0 if there is no part with this name.
function write_command_part(name, c,    i, list) {
    if (name == "synopsis") {
        list = "usage " command[c]
        for (i = 1; i <= entries[list]; i++)
            write_usage(entry[list, i])
    } else if (name == "about") {
        print roff(about[c])
    } else if (name == "command_options") {
        write_option_entries("option " command[c])
    } else if (name == "statuses") {
        write_entries("status " command[c])
    } else if (name == "command") {
        print ".SS claimd " roff(command[c])
        write_command_part("about", c)
        write_command_part("command_options", c)
        print ".PP\nExample:\n" roff(example[c]) "\n.PP\nExit status:"
        write_command_part("statuses", c)
    } else {
        return 0
    }
    return 1
}

# ------------------------------------------------------------------ completions

function write_bash_values(    i) {
    for (i = 1; i <= options; i++)
        if (words[i] != "" && !is_switch[i])
            print "    " argument[i] ") _claimd_words '" words[i] "'; return ;;"
}

function write_bash_commands(    i, k, list, out) {
    for (i = 1; i <= commands; i++) {
        list = "option " command[i]
        out = "    " command[i] ") _claimd_words "
        out = out "'" actions[i]
        for (k = 1; k <= entries[list]; k++)
            out = out " " entry[list, k]
        for (k = 1; is_client[i] && k <= entries["connection"]; k++)
            out = out " " entry["connection", k]
        print out (takes_options[i] ? texts["all_options"] : "") " --help'" \
            (actions[i] == "" && !is_client[i] ? "; _claimd_files" : "") " ;;"
    }
}

function write_zsh_options(    i, k, c, text) {
    for (i = 1; i <= options; i++) {
        text = ""
        for (k = 1; k <= length(help[i]); k++) { # inside '[...]' of a word in single quotes
            c = substr(help[i], k, 1)
            text = text (c == "'" ? "'\\''" : index("[]\\`$", c) > 0 ? "\\" c : c)
        }
        text = "        '" argument[i] "[" text "]"
        if (words[i] != "" && !is_switch[i])
            text = text ":word:(" words[i] ")"
        else if (is_file[i])
            text = text ":file:_files"
        else if (!is_switch[i])
            text = text ":" value[i] ": "
        print text "'"
    }
}

# The options of a list.
function zsh_entries(list,    k, value, out) {
    for (k = 1; k <= entries[list]; k++) {
        value = entry_value[list, k]
        if (value == "")
            out = out " " entry[list, k]
        else
            out = out " '" entry[list, k] ":value:" (entry[list, k] == "--role" ? "(" texts["roles"] ")" \
                : value ~ /^(FILE|DIR|OUT)$/ ? "_files" : " ") "'"
    }
    return out
}

function write_zsh_commands(    i, k, list, out) {
    for (i = 1; i <= commands; i++) {
        list = "option " command[i]
        out = "    " command[i] ")\n        _arguments"
        if (actions[i] != "")
            out = out " '1:what:(" actions[i] ")'"
        out = out zsh_entries(list)
        if (is_client[i])
            out = out zsh_entries("connection") " '*: : '"
        print out " --help" (takes_options[i] ? " $options" : "") \
            (actions[i] == "" && !is_client[i] ? " '*:file:_files'" : "") " ;;"
    }
}

# ------------------------------------------------------------------ options

function write_markdown(    i) {
    for (i = 1; i <= options; i++) {
        if (group[i] != group[i - 1])
            print "\n## " group[i]
        print "\n### " option[i] "\n\n" help[i] "\n\n- Value: `" value[i] "`\n- Default: `" default_of[i] "`" (durable[i] == "" ? "" : ", with a journal or Redis `" durable[i] "`")
        if (range[i] != "")
            print "- Range: " range[i]
        if (sample[i] != "")
            print "- Example: `" option[i] " = " sample[i] "`"
        if (reloadable[i])
            print "- Reloadable"
    }
}

# Every option with its default as a comment, or with its value in `set`.
function write_conf(    i, k, count, words, line) {
    for (i = 1; i <= options; i++) {
        if (group[i] != group[i - 1])
            print "\n# ---- " group[i]
        line = "\n#"
        count = split(help[i], words, " ")
        for (k = 1; k <= count; k++) {
            if (length(line) + 1 + length(words[k]) > (line ~ /^\n/ ? 80 : 79)) {
                print line
                line = "#"
            }
            line = line " " words[k]
        }
        print line
        if (option[i] in values)
            print option[i] " = " values[option[i]]
        else
            print "#" option[i] " = " ("journal" in values && durable[i] != "" ? durable[i] : default_of[i])
    }
}

END { exit failed }
