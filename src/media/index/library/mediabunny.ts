/** The parts of mediabunny that we use. Imported only when a file needs it, as it is the largest part of the engine. */
export { CustomSource, EncodedPacketSink, Input, OGG, WAVE } from "mediabunny";
export type { EncodedPacket, InputAudioTrack } from "mediabunny";
