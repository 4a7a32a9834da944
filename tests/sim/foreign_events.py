"""What a .trace.json says of one launch of a foreign kernel, as tests/data/foreign/NAME.json has it."""


def events_of(trace):
    """The launch, and by CTA and warp the markers and ranges, sorted and without times."""
    names, places = trace["stringTable"], trace["locationTable"]
    (launch,) = trace["launches"]
    warps = {}

    def warp(row):
        place = places[row]
        return warps.setdefault((place["ctaId"][0], place["warpId"]), {"markers": [], "ranges": []})

    for marker in launch["markers"]:
        warp(marker["locIdx"])["markers"].append(
            [names[marker["markerNameIdx"]], marker.get("payloadType"), marker.get("payloadVal")])
    for one in launch["ranges"]:
        warp(one["warpLocIdxs"][0])["ranges"].append(
            [names[one["rangeNameIdx"]], one["rangeType"], one["rangeId"]] +
            [[event["eventId"], event.get("payloadType"), event.get("payloadVal")]
             for event in one["internalEvents"]])
    return launch, [{"cta": cta, "warp": index, "markers": sorted(found["markers"], key=str),
                     "ranges": sorted(found["ranges"], key=str)} for (cta, index), found in sorted(warps.items())]
