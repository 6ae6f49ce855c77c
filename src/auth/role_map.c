#include "claimd/auth/role_map.h"

#include "claimd/json/string.h"

static enum status
read_entry(struct role_map *out, struct bytes entry, struct reason *why)
{
    struct bytes rest = entry, name = bytes_trim(bytes_cut(&rest, '=')), word;
    enum role role;

    if (!bytes_present(rest) || name.len == 0)
        return reason_give(why, ST_BAD_VALUE, "must be NAME=ROLE, separated by commas");
    word = bytes_trim(rest);
    role = role_find(word);
    if (role == ROLE_COUNT)
        return role_refuse(word, why);
    if (out->count == ROLE_MAP_MAX)
        return reason_give(why, ST_BAD_VALUE, "must have at most %d entries",
                           ROLE_MAP_MAX);
    out->entries[out->count].name = name;
    out->entries[out->count++].role = role;
    return ST_OK;
}

enum status
role_map_read(struct role_map *out, struct bytes text, struct reason *why)
{
    struct role_map map = {.count = 0};
    enum status st = ST_OK;

    while (st == ST_OK && bytes_present(text))
        st = read_entry(&map, bytes_cut(&text, ','), why);
    if (st == ST_OK)
        *out = map;
    return st;
}

role_set
role_map_find(const struct role_map *map, struct bytes inside)
{
    role_set roles = 0;

    for (size_t i = 0; i < map->count; i++)
        if (json_string_equals(inside, map->entries[i].name))
            roles |= role_bit(map->entries[i].role);
    return roles;
}
