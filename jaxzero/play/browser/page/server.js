// Asking the server on this machine.

export async function ask(method, path, body) {
  const options = method === "GET" ? {} : { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    const answer = await fetch(path, { cache: "no-store", ...options });
    return { status: answer.status, said: await answer.json() };
  } catch {
    return { status: 0, said: { error: "The program does not answer. Start it again, and load this page." } };
  }
}
