/**
 * Shapes of entries as providers write them, how we read them, and what two players list of them: Kodi 20.1 with IPTV
 * Simple 20.6.1, and VLC 3.0, each with one list of all shapes.
 */

/** What a player lists where it differs from us. */
export interface Otherwise {
  /** `title | groups` of each channel. Kodi makes up a name from the address where it finds none: `?`. */
  readonly kodi?: readonly string[];
  /** Titles: VLC reads no groups. */
  readonly vlc?: readonly string[];
}

/** Lines without a header, and `title | group | id | address` of each entry. */
export const SHAPES: readonly (readonly [what: string, lines: string[], entries: string[], otherwise?: Otherwise])[] = [
  ["plain", ["#EXTINF:-1,A", "http://h/1"], ["A|||http://h/1"]],
  ["attributes", ['#EXTINF:-1 tvg-id="a" group-title="G",A', "http://h/1"], ["A|G|a|http://h/1"]],
  ["single quotes", ["#EXTINF:-1 tvg-id='a' group-title='G',A", "http://h/1"], ["A|G|a|http://h/1"], {
    kodi: ["A|'G'"],
  }],
  ["no quotes", ["#EXTINF:-1 tvg-id=a group-title=G,A", "http://h/1"], ["A|G|a|http://h/1"]],
  ["tabs", ['#EXTINF:-1\ttvg-id="a"\tgroup-title="G"\t,A', "http://h/1"], ["A|G|a|http://h/1"]],
  ["a comma first", ['#EXTINF:-1, tvg-id="a" group-title="G",A', "http://h/1"], ["A|G|a|http://h/1"]],
  [
    "commas in values",
    ['#EXTINF:-1 tvg-id="a,b" group-title="G, H",A, B', "http://h/1"],
    ["A, B|G, H|a,b|http://h/1"],
    { vlc: [' H",A, B'] },
  ],
  ["an unclosed quote", ['#EXTINF:-1 group-title="G,A', "http://h/1"], ["A|||http://h/1"], { kodi: ["A|G"] }],
  ["no comma", ['#EXTINF:-1 tvg-id="a" A B', "http://h/1"], ["A B||a|http://h/1"], {
    kodi: ["?|"],
    vlc: ["http://h/1"],
  }],
  ["a wide comma", ['#EXTINF:-1 tvg-id="a"，A', "http://h/1"], ["A||a|http://h/1"], {
    kodi: ["?|"],
    vlc: ["http://h/1"],
  }],
  ["no title", ['#EXTINF:-1 tvg-id="a",', "http://h/dir/1.ts"], ["1.ts||a|http://h/dir/1.ts"], {
    kodi: ["?|"],
    vlc: [""],
  }],
  ["the title in tvg-name", ['#EXTINF:-1 tvg-name="A",', "http://h/1"], ["A|||http://h/1"], {
    kodi: ["?|"],
    vlc: [""],
  }],
  ["a title with quotes", ['#EXTINF:-1,"A"', "http://h/1"], ['"A"|||http://h/1']],
  ["an escaped quote", ['#EXTINF:-1 group-title="G \\"1\\"",A', "http://h/1"], ['A|G "1"||http://h/1'], {
    kodi: ["A|G \\"],
  }],
  ["small letters", ['#extinf:-1 TVG-ID="a" Group-Title="G",A', "http://h/1"], ["A|G|a|http://h/1"], { kodi: ["?|"] }],
  ["a repeated id", ['#EXTINF:-1 tvg-id="" tvg-id="a",A', "http://h/1"], ["A||a|http://h/1"]],
  ["a repeated group", ['#EXTINF:-1 group-title="G" group-title="H",A', "http://h/1"], ["A|G;H||http://h/1"], {
    kodi: ["A|G"],
  }],
  ["a group that holds", ["#EXTGRP:G", "#EXTINF:-1,A", "http://h/1", "#EXTINF:-1,B", "http://h/2"], [
    "A|G||http://h/1",
    "B|G||http://h/2",
  ], { kodi: ["B|"] }],
  ["a group after the title", ["#EXTINF:-1,A", "#EXTGRP:G", "http://h/1"], ["A|G||http://h/1"]],
  ["a group that ends", ["#EXTGRP:G", "#EXTINF:-1,A", "http://h/1", "#EXTGRP:", "#EXTINF:-1,B", "http://h/2"], [
    "A|G||http://h/1",
    "B|||http://h/2",
  ], { kodi: ["B|"] }],
  ["both groups", ["#EXTGRP:G", '#EXTINF:-1 group-title="H",A', "http://h/1"], ["A|H||http://h/1"]],
  ["fields behind a bar", ["#EXTINF:-1,A", "http://h/1.m3u8|User-Agent=x y"], ["A|||http://h/1.m3u8|User-Agent=x y"]],
  ["spaces in the address", ["#EXTINF:-1,A", "http://h/a b.ts"], ["A|||http://h/a b.ts"]],
  ["spaces around it", ["#EXTINF:-1,A", "  http://h/1  "], ["A|||http://h/1"]],
  ["empty lines", ["", "#EXTINF:-1,A", "", "http://h/1", ""], ["A|||http://h/1"]],
  ["remarks", ["# x", "#EXTINF:-1,A", "# y", "http://h/1"], ["A|||http://h/1"]],
  ["options of players", ["#EXTINF:-1,A", "#EXTVLCOPT:http-user-agent=x", "#KODIPROP:a=b", "http://h/1"], [
    "A|||http://h/1",
  ]],
  ["multicast", ["#EXTINF:-1,A", "udp://@239.0.0.1:1234"], ["A|||udp://@239.0.0.1:1234"]],
  ["a title without an address", ["#EXTINF:-1,A", "#EXTINF:-1,B", "http://h/2"], ["B|||http://h/2"]],
  ["an address without a title", ["http://h/dir/1.ts"], ["1.ts|||http://h/dir/1.ts"], {
    kodi: ["?|"],
    vlc: ["http://h/dir/1.ts"],
  }],
  ["a script", ["#EXTINF:-1,A", "javascript:alert(1)", "#EXTINF:-1,B", "http://h/2"], ["B|||http://h/2"], {
    kodi: ["A|", "B|"],
  }],
  ["markup between", ["#EXTINF:-1,A", "<br />", "#EXTINF:-1,B", "http://h/2"], ["B|||http://h/2"], {
    kodi: ["A|", "B|"],
  }],
];
