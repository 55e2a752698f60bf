/** The program with faults: a second after its start an exception comes from each kind of callback. */
import { loadPorts } from "../../platform/detect.ts";

const fault = (where: string): never => {
  throw new TypeError(`a fault in ${where}`);
};

setTimeout(() => {
  setTimeout(() => fault("a timer"), 0);
  queueMicrotask(() => fault("a microtask"));
  void Promise.resolve().then(() => fault("a promise"));
  void loadPorts().then(async ({ udp, tcp }) => {
    const socket = await udp.bind({ host: "127.0.0.1" });
    socket.onMessage(() => {
      socket.close();
      fault("a datagram");
    });
    await socket.send(new Uint8Array(1), socket.address);
    const ignore = () => {};
    const listener = await tcp.listen({ host: "127.0.0.1", port: 0 }, (connection) => {
      connection.open({
        data: () => fault("a connection"),
        end: ignore,
        drain: ignore,
        close: () => void listener.close(),
      });
    });
    const connection = await tcp.connect(listener.address, { signal: AbortSignal.timeout(5000) });
    connection.open({ data: ignore, end: ignore, drain: ignore, close: ignore });
    connection.write(new Uint8Array(1));
  });
}, 1000).unref();

await import("../../platform/any/main.ts");
